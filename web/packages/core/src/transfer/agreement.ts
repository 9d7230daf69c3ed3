/** How often the origin's bytes are what certificates say. */

/** Differences in a row, and in a hundred of so many comparisons, that are too many. */
const mostInRow = 3;
const enough = 50;

export const createAgreement = () => {
  let compared = 0;
  let different = 0;
  let inRow = 0;
  return {
    agrees() {
      compared++;
      inRow = 0;
    },
    /** Whether they differ so often that certificates are of no use here. */
    differs(): boolean {
      compared++;
      different++;
      return ++inRow >= mostInRow || (compared >= enough && different * 100 > compared);
    },
  };
};

export type Agreement = ReturnType<typeof createAgreement>;
