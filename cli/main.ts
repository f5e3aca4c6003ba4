import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { exitCodes } from './exit-codes.ts'

// Caches compiled code, because a short command spends most of its time compiling modules.
enableCompileCache(fileURLToPath(new URL('../.cache/compile', import.meta.url)))
// Handles Ctrl-C before the other modules load, so that it always works. `start` has a separate
// handler, which first stops its parts.
if (process.argv[2] !== 'start') process.once('SIGINT', () => process.exit(exitCodes.interrupted.code))

const { buildProgram, runCommand } = await import('./program.ts')
await runCommand(await buildProgram(process.argv.slice(2).find((word) => !word.startsWith('-')) ?? ''), process.argv)
