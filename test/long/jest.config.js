import base from '../../jest.config.js'

/** Tests that take minutes, or need a server that npm cannot bring: `npm run test:long`. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/long/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  maxWorkers: 1,
}
