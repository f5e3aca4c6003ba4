import { createRequire, registerHooks } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Agent, setGlobalDispatcher } from 'undici'
import { jest, takeGlobals } from './jest-globals.js'

const require = createRequire(import.meta.url)
const { default: runFile } = require('jest-circus/runner')
const framework = join(dirname(require.resolve('jest-circus')), 'jestAdapterInit.js')

const globals = new URL('./jest-globals.js', import.meta.url).href
const randomCases = new URL('./random-cases.ts', import.meta.url).href
const root = new URL('../../', import.meta.url).href
const tests = new URL('../', import.meta.url).href
// Its tests see what is so before the parser is loaded: they load the product for themselves.
const alone = `${root}test/safety/sql/`
// For the processes that tests start: each would compile the same.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('.cache/compile', root))
// A connection for each request that a test makes by `fetch`. A server that runs in this process
// closes one that was idle for six seconds: on a busy machine it does so in the same moment in
// which the test uses it again, and reads ECONNRESET.
setGlobalDispatcher(new Agent({ pipelining: 0 }))
let files = 0
let ownFolder = tests

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier === '@jest/globals') return { url: globals, shortCircuit: true }
    if (specifier === 'fast-check' && !context.parentURL?.startsWith(randomCases))
      return { url: `${randomCases}?${files}`, shortCircuit: true, format: 'module-typescript' }
    const resolved = nextResolve(specifier, context)
    const isOwn = resolved.url.startsWith(ownFolder) && resolved.url.endsWith('.ts')
    return isOwn && !resolved.url.includes('/node_modules/')
      ? { ...resolved, url: `${resolved.url}?${files}` }
      : resolved
  },
})

/**
 * Runs a test file in Node itself, as the product runs, and not in a sandbox of jest's. Node strips
 * the types, and a worker of jest loads the product and its packages once for all its files: in
 * sandboxes that took a third of the time. What belongs to the tests is loaded for each file, so
 * that no state of a helper outlives it.
 */
export default async function runInNode(globalConfig, config, environment, _sandbox, path, report) {
  files += 1
  const file = pathToFileURL(path).href
  ownFolder = file.startsWith(alone) ? root : tests
  // Every file meets the parser loaded, whichever came before it.
  if (ownFolder === tests) await (await import('../../safety/sql/inspect.ts')).loadSql()
  const settings = { ...process.env }
  // Jest's own reads source maps for each frame of each error. There are none: stripped types leave
  // lines and columns as they were.
  Error.prepareStackTrace = undefined
  try {
    return await runFile(globalConfig, config, environment, node, path, report)
  } finally {
    jest.restoreAllMocks()
    for (const name of Object.keys(process.env)) if (!(name in settings)) delete process.env[name]
    Object.assign(process.env, settings)
  }
}

/** What jest's runner asks of a sandbox. */
const node = {
  requireInternalModule(name) {
    // Holds what one file has registered.
    if (name === framework) delete require.cache[name]
    return require(name)
  },
  setGlobalsForRuntime: takeGlobals,
  requireModule: require,
  unstable_shouldLoadAsEsm: () => true,
  unstable_importModule: (file) => import(pathToFileURL(file).href),
  enterTestCode() {},
  leaveTestCode() {},
}
