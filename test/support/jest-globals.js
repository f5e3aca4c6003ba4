import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { ModuleMocker } = createRequire(require.resolve('jest-circus'))('jest-mock')

// What test files import as `@jest/globals`: always that of the file that runs (see in-node.js).
export let afterAll
export let afterEach
export let beforeAll
export let beforeEach
export let describe
export let expect
export let it
export let test
export const jest = new ModuleMocker(globalThis)

export function takeGlobals(globals) {
  ;({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } = globals)
}
