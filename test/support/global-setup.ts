import { ensureWeb } from '../../start/web.ts'
import { startTestServers } from './broker.ts'

/**
 * Runs once before the first test file, in jest's own process. Starts nothing yet: see
 * `startTestServers`.
 */
export default async function globalSetup(): Promise<void> {
  chooseFreshSeed()
  // Tests meet the pages as a start serves them; nothing is built where they are newer than their
  // source.
  await ensureWeb()
  const { address, stop } = await startTestServers()
  process.env.NIGHTSHIFT_TEST_SERVERS = address
  ;(globalThis as { stopTestServers?: () => Promise<void> }).stopTestServers = stop
}

/**
 * In CI each run tries new random cases, the same ones in all its processes: see random-cases.ts.
 */
function chooseFreshSeed(): void {
  if (process.env.CI) process.env.FC_SEED ??= String(Math.floor(Math.random() * 2 ** 31))
  if (process.env.FC_SEED)
    console.log(`One random case in a hundred is new: FC_SEED=${process.env.FC_SEED} repeats them.`)
}
