import base from '../../jest.config.js'

/** The served OpenAPI document against the API that serves it: `npm run test:contract`. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/contract/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 1_200_000,
  maxWorkers: 1,
}
