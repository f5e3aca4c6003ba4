import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Lives the first so many seeds in a separate process, as `npm run simulate` does it: a test runner's sandbox makes it three times
 * as slow. Answers the summary that it prints last.
 */
export async function simulateLives(seeds: number): Promise<{ seeds: number; broken: number; effects: number }> {
  const entry = fileURLToPath(new URL('./main.ts', import.meta.url))
  const { stdout } = await run(process.execPath, [entry, '--seeds', String(seeds)])
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '').simulate
}
