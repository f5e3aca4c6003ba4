import { runInForeground } from '../../../start/everything.ts'

// `npm start` with stand-ins for the parts, its state where the test wants it; tells the test when
// all are ready.
const [stateDir = '', rootDir = ''] = process.argv.slice(2)
const part = new URL('part.ts', import.meta.url).pathname
const code = await runInForeground(
  { rootDir, stateDir, env: process.env, entries: { lab: part, runbook: part, api: part, worker: part } },
  (event) => process.stdout.write(`${JSON.stringify(event)}\n`),
  async ({ run }) => {
    process.stdout.write(`${JSON.stringify({ kind: 'all ready', url: run.url })}\n`)
  },
)
process.exit(code)
