/** Mutation testing of the kernel: `npm run mutate`, or of one file with `npm run mutate -- --mutate safety/fold.ts`. */
export default {
  mutate: [
    'safety/**/*.ts',
    // Tables without a branch: what each entry means is held to the manuals by test/safety/command/grammars.test.ts.
    '!safety/command/grammars/*.ts',
    // A list of paths: a mutant that empties one says nothing that another's would not.
    '!safety/command/secret-paths.ts',
  ],
  testRunner: 'in-process',
  plugins: ['./test/mutation/runner.ts'],
  // Reasons and hints for people: see runner.ts for what counts as one.
  ignorers: ['prose'],
  coverageAnalysis: 'perTest',
  // What runs while a module loads builds the tables: each such mutant would need a process of its own.
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 2_000,
  incremental: true,
  incrementalFile: '.cache/stryker/incremental.json',
  tempDirName: '.cache/stryker/sandbox',
  // Type stripping reads no tsconfig.json, and Stryker rewrites one through an interface that TypeScript 7 no longer has.
  ignorePatterns: ['tsconfig.json', 'docs', 'bench', 'cli', 'lab', 'web', 'test/replay'],
  reporters: ['clear-text', 'json', 'html'],
  clearTextReporter: { reportTests: false, reportMutants: false },
  jsonReporter: { fileName: '.cache/stryker/mutation.json' },
  htmlReporter: { fileName: '.cache/stryker/mutation.html' },
  // The whole kernel stays above this; a run of one file may end below it.
  thresholds: { high: 90, low: 85, break: 85 },
}
