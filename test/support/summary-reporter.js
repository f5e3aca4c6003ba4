import { writeFileSync } from 'node:fs'

/** Leaves the counts of a run and the files that failed in the file that NIGHTSHIFT_JEST_SUMMARY names; `.ci/run` reads them. */
export default class SummaryReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults }) {
    const file = process.env.NIGHTSHIFT_JEST_SUMMARY
    if (!file) return
    const failedFiles = testResults
      .filter(({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError)
      .map(({ testFilePath }) => testFilePath)
    writeFileSync(file, JSON.stringify({ numPassedTests, numFailedTests, numRuntimeErrorTestSuites, failedFiles }))
  }
}
