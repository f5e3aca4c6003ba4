import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { exitCodes } from './errors.ts'

// A short command spends most of its time on reading and compiling modules: what was compiled once is kept.
enableCompileCache(fileURLToPath(new URL('../.cache/compile', import.meta.url)))
// Before anything is loaded, so that no Ctrl-C comes too early. Start stops its parts first and has its own way to do so.
if (process.argv[2] !== 'start') process.once('SIGINT', () => process.exit(exitCodes.interrupted.code))

const [{ buildProgram: program }, { runCommand }] = await Promise.all([import('./program.ts'), import('./program.ts')])
await runCommand(await program(process.argv[2]), process.argv)
