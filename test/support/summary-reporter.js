import { writeFileSync } from 'node:fs'

/** Leaves the counts of a run in the file that NIGHTSHIFT_JEST_SUMMARY names; `.ci/run` reads them. */
export default class SummaryReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites }) {
    const file = process.env.NIGHTSHIFT_JEST_SUMMARY
    if (file) writeFileSync(file, JSON.stringify({ numPassedTests, numFailedTests, numRuntimeErrorTestSuites }))
  }
}
