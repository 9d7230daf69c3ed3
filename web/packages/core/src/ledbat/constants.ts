/** The constants of the controller; docs/experiments/background-transport.md has the reasons. Times in µs, sizes in bytes. */
export const packet = 1200;
export const initialWindow = 10 * packet;
export const minWindow = packet / 16;
export const maxWindow = 16 * 1024 * 1024;
export const minTarget = 15_000;
export const maxTarget = 60_000;
export const maxMessage = 16_384;
export const messageTime = 7_000;
export const fewPackets = 4;
export const fewTime = 10_000;
export const fewPart = 6;
export const maxInterval = 1_000_000;

/** A moment or a delay that is not known. */
export const never = 2 ** 52;

export const bucketTime = 60_000_000;
export const bucketPatience = 360_000_000;
export const bucketSamples = 120;
export const baseBuckets = 10;
export const maxSkew = 12_000;
export const freshTime = 1_000_000;

export const slowdownWindow = 2 * packet;
export const slowdownDepth = 8;
export const slowdownFactor = 19;
export const slowdownMost = 30_000_000;

export const smoothTarget = 10_000;
export const leastTarget = 3_000;
export const leastPackets = 4;
export const eagerTarget = 35_000;
export const recallTime = 1_000_000;

export const ceilingTime = 250_000;
export const ceilingPause = 1_000_000;
export const ceilingIdle = 25_000;
export const ceilingQueue = 10_000;
export const ceilingDrain = 60_000;
export const ceilingKeep = 95;
export const ceilingBest = 5_000_000;
export const ceilingSlow = 32;
export const ceilingFast = 16;
export const ceilingLong = 2_000_000;
export const besideMost = 100_000;

export const startPart = 2;

export const fastAfter = 16;
export const fastPart = 8;

export const lossLeast = 50;
export const lossMost = 200;

export const roomTime = 10_000_000;
export const roomPart = 90;

export const lostAfter = 3;
export const maxPending = 4096;
export const timeoutMin = 1_000_000;
export const timeoutMax = 8_000_000;
export const idleMin = 1_000_000;
export const pacingGain = 1125;
export const burstTime = 4_000;
export const firstRtt = 100_000;
export const leastRtt = 100;
export const mostRtt = 60_000_000;

export const ackGap = 2_000;
export const rateTime = 200_000;
export const fastRate = 2_500_000;
/**
 * Bytes/s from which on foreground is acknowledged as seldom: below it acks are few, and a peer that serves several links in turn is near
 * the rate at which a peer stalls.
 */
export const rareRate = 65_536;
export const maxRequestInterval = 4_000_000;

/** Division as integers have it: towards zero. Exact, since no operand passes 2^53. */
export const div = (a: number, b: number): number => Math.trunc(a / b);
