import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/**
 * Leaves the counts of a run and what failed in the file that NIGHTSHIFT_JEST_SUMMARY names;
 * `.ci/run` reads them.
 */
export default class SummaryReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults }) {
    const file = process.env.NIGHTSHIFT_JEST_SUMMARY
    if (!file) return
    const failedFiles = testResults
      .filter(({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError)
      .map(({ testFilePath }) => testFilePath)
    const failures = testResults.flatMap(failuresOf)
    writeFileSync(
      file,
      JSON.stringify({ numPassedTests, numFailedTests, numRuntimeErrorTestSuites, failedFiles, failures }),
    )
  }
}

/**
 * Each test that failed, with the first line of its message; a file that could not be run is one
 * failure of its own.
 */
function failuresOf({ testFilePath, testResults, testExecError }) {
  const file = relative(process.cwd(), testFilePath)
  const firstLine = (text = '') => stripVTControlCharacters(text).trim().split('\n')[0].slice(0, 200)
  const failed = testResults
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => ({ file, title: fullName, message: firstLine(failureMessages[0]) }))
  return failed.length === 0 && testExecError
    ? [{ file, title: 'the file itself', message: firstLine(testExecError.message ?? String(testExecError)) }]
    : failed
}
