/**
 * What starts processes of the product takes most of the time of all tests: it runs by itself (`npm run test:whole`). Commands of the terminal
 * are a process each. Two incidents stay among the others, end to end: a device is written to, an ending refused.
 */
const whole = [
  'test/failure/**/*.test.ts',
  'test/start/{everything,postgres,prepare,temporal,temporal-cli}.test.ts',
  'test/e2e/{answers,canaries,database-repair,decisions,demo,devices,followers,honest,investigation,led-followers}.test.ts',
  'test/e2e/{manual-change,model-servers,morning,placement,repairs,resumption,setup,slack,sources,stop}.test.ts',
  'test/e2e/{three-days,trial,trust,undo,webhooks}.test.ts',
  'test/simulation/simulation.test.ts',
  'test/mesh/agent/{corpus,exactly-once,refusals}.test.ts',
  'test/mesh/calls-out.test.ts',
  'test/lab/{children,lab,lasting-faults}.test.ts',
  'test/upgrade/upgrade.test.ts',
  'test/cli/**/*.test.ts',
]

/** The same list as regular expressions. */
const wholePatterns = whole.map((glob) =>
  `<rootDir>/${glob}`
    .replaceAll('.', '\\.')
    .replace('**/*', '.*')
    .replace(/\{(.*)\}/, (_, names) => `(${names.replaceAll(',', '|')})`),
)

/** Who names a file or a folder means it. */
const isNamed = process.argv.slice(2).some((word) => word.startsWith('test/'))

const paths = (globs) => globs.map((glob) => `<rootDir>/${glob}`)

const base = {
  testEnvironment: 'node',
  testMatch: paths(['test/**/*.test.ts']),
  // Node strips the types, as it does for the product: see the runner.
  transform: {},
  testRunner: '<rootDir>/test/support/in-node.js',
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testSequencer: '<rootDir>/test/support/longest-first.js',
  reporters: ['default', '<rootDir>/test/support/summary-reporter.js'],
  // Recording is a command of its own, not a test: see test/upgrade/record.test.ts.
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/test/browser/',
    '<rootDir>/test/contract/',
    '<rootDir>/test/long/',
    '<rootDir>/test/real/',
    ...(process.env.RECORD_FIXTURE ? [] : ['/upgrade/record.test.ts$']),
  ],
  modulePathIgnorePatterns: [
    '<rootDir>/.nightshift',
    '<rootDir>/.nightshift-lab',
    '<rootDir>/.nightshift-site',
    '<rootDir>/.cache',
  ],
  // It only ends a hang, and is longer than two waits (test/support/directory.ts): what a busy machine takes longer for is not wrong.
  testTimeout: 600_000,
  // One more than there are cores in CI: most of our tests wait for servers.
  maxWorkers: 3,
  // A worker has the whole product loaded: on a busy machine it takes longer to end than the half second after which jest ends it and
  // suspects a leak. One that a leak holds is still ended, and said.
  workerGracefulExitTimeout: 20_000,
}

/** What each kind of test wants otherwise. Those that run apart run one after the other, but for the whole product. */
const apart = { testPathIgnorePatterns: ['/node_modules/'], maxWorkers: 1 }
const kinds = {
  everyday: { testPathIgnorePatterns: [...base.testPathIgnorePatterns, ...(isNamed ? [] : wholePatterns)] },
  whole: { testMatch: paths(whole) },
  // The pages in a real browser: Chromium is no package of npm. A browser, a lab and a worker are enough for one machine.
  browser: { ...apart, testMatch: paths(['test/browser/**/*.test.ts']) },
  // The served OpenAPI document against the API that serves it: needs Python.
  contract: { ...apart, testMatch: paths(['test/contract/**/*.test.ts']), testTimeout: 1_200_000 },
  // Minutes long, or with a server that npm cannot bring. Side by side, scrapes of one second come late, and alerts end that still hold.
  // Of the real programs those that Debian packages come along: half a minute.
  long: {
    ...apart,
    testMatch: paths([
      'test/long/**/*.test.ts',
      'test/{mesh/agent/capabilities/fs-read,db/races,db/alerts/ingest-body}.test.ts',
      'test/real/{engine,judge}/*.test.ts',
      // The databases of the lab take minutes more: `npm run test:real -- databases`.
      'test/real/databases/{bounds,corpus,pooler}.test.ts',
    ]),
  },
  // Against real programs of one kind, which test/real/main.ts looks for or installs.
  real: { ...apart, testMatch: paths(['test/real/**/*.test.ts']) },
}

const kind = process.env.NIGHTSHIFT_TESTS ?? 'everyday'
if (kind === 'long') {
  // Races of which `npm test` plays a few rounds are played longer here.
  process.env.SWAP_ROUNDS ??= '3000'
  process.env.RACE_ROUNDS ??= '80'
}

/** `npm test`, or the kind that bin/run.js names in NIGHTSHIFT_TESTS. */
export default { ...base, ...kinds[kind] }
