/**
 * What starts and kills whole processes takes most of the time of all tests: it runs by itself (`npm run test:whole`). Four incidents stay
 * among the others, end to end: a device is written to, a metric read, an ending refused, one accepted.
 */
export const whole = [
  'test/failure/**/*.test.ts',
  'test/start/{everything,postgres,prepare,temporal}.test.ts',
  'test/e2e/{answers,canaries,decisions,demo,devices,investigation,three-days,webhooks}.test.ts',
  'test/simulation/simulation.test.ts',
  'test/mesh/agent/{corpus,exactly-once}.test.ts',
  'test/cli/{mesh,access}.test.ts',
]

/** The same list as regular expressions. */
export const wholePatterns = whole.map((glob) =>
  `<rootDir>/${glob}`
    .replaceAll('.', '\\.')
    .replace('**/*', '.*')
    .replace(/\{(.*)\}/, (_, names) => `(${names.replaceAll(',', '|')})`),
)

/** Who names a file or a folder means it. */
const isNamed = process.argv.slice(2).some((word) => word.startsWith('test/'))

export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  // Node strips the types, as it does for the product: see the runner.
  transform: {},
  testRunner: '<rootDir>/test/support/in-node.js',
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testSequencer: '<rootDir>/test/support/longest-first.js',
  reporters: ['default', '<rootDir>/test/support/summary-reporter.js'],
  // Recording is a command of its own, not a test: see test/replay/record.test.ts and test/upgrade/record.test.ts.
  // A real browser drives those: npm run test:browser.
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/test/browser/',
    // Needs Python: npm run test:contract.
    '<rootDir>/test/contract/',
    // Minutes long, or with servers from outside npm: npm run test:long.
    '<rootDir>/test/long/',
    ...(isNamed ? [] : wholePatterns),
    ...(process.env.RECORD_HISTORIES === '1' ? [] : ['/replay/record.test.ts$']),
    ...(process.env.RECORD_FIXTURE ? [] : ['/upgrade/record.test.ts$']),
  ],
  modulePathIgnorePatterns: ['<rootDir>/.nightshift', '<rootDir>/.nightshift-lab', '<rootDir>/.cache'],
  // Far beyond what any test needs: what a busy machine takes longer for is not wrong.
  testTimeout: 120_000,
  // One more than there are cores in CI: most of our tests wait for servers.
  maxWorkers: 3,
  // A worker has the whole product loaded: on a busy machine it takes longer to end than the half second after which jest ends it and
  // suspects a leak. One that a leak holds is still ended, and said.
  workerGracefulExitTimeout: 20_000,
}
