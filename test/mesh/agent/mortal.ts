import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentOptions, startAgent } from '../../../mesh/agent/start.ts'

/** The agent, but it dies by SIGKILL when its journal has told what the file `die-at` says: `<kind> <milliseconds later>`. */
const options = JSON.parse(process.argv[2] ?? '{}') as AgentOptions
const file = join(options.state, 'die-at')

const { url } = await startAgent(options, {
  onEntry({ kind }) {
    const [at, laterMs] = wish()
    if (at !== kind) return
    rmSync(file)
    if (Number(laterMs) > 0) setTimeout(die, Number(laterMs))
    else die()
  },
})
console.error(`Listening on ${url}: ready`)

function wish(): string[] {
  try {
    return readFileSync(file, 'utf8').split(' ')
  } catch {
    return []
  }
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}
