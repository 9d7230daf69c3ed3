// node scripts/browsers.mjs writes docs/browsers.md: the APIs of browsers that the packages use, and since when browsers have them. A
// test compares (scripts/browsers/browsers.test.mjs).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { page, surveyPackages } from './browsers/page.mjs';
import { web } from './declarations.mjs';

const survey = surveyPackages();
for (const sentence of survey.wrong) console.error(sentence);
if (survey.wrong.length > 0) process.exitCode = 1;
writeFileSync(join(web, '../docs/browsers.md'), page(survey));
