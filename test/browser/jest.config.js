import config from '../../jest.config.js'

/** The pages in a real browser: apart from `npm test`, because Chromium is no package of npm. */
export default {
  ...config,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/browser/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 180_000,
  // A browser, a lab and a worker are enough for one machine.
  maxWorkers: 1,
}
