import base from '../../jest.config.js'

// Races of which `npm test` plays a few rounds are played longer here.
process.env.SWAP_ROUNDS ??= '3000'
process.env.RACE_ROUNDS ??= '80'

/** Tests that take minutes, or need a server that npm cannot bring: `npm run test:long`. */
export default {
  ...base,
  rootDir: '../..',
  testMatch: ['<rootDir>/test/long/**/*.test.ts', '<rootDir>/test/{mesh/capabilities/fs-read,db/races}.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  // Side by side, scrapes of one second come late, and alerts end that still hold.
  maxWorkers: 1,
}
