import base, { whole, wholePatterns } from '../../jest.config.js'

/** Tests that start, kill and restart the whole product as processes: `npm run test:whole`. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: whole.map((path) => `<rootDir>/${path}`),
  testPathIgnorePatterns: base.testPathIgnorePatterns.filter((pattern) => !wholePatterns.includes(pattern)),
}
