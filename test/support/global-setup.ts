import { ensureWeb } from '../../start/web.ts'
import { startTestServers } from './broker.ts'

/** Runs once before the first test file, in jest's own process. Starts nothing yet: see `startTestServers`. */
export default async function globalSetup(): Promise<void> {
  // Tests meet the pages as a start serves them; nothing is built where they are newer than their source.
  await ensureWeb()
  const { address, stop } = await startTestServers()
  process.env.NIGHTSHIFT_TEST_SERVERS = address
  ;(globalThis as { stopTestServers?: () => Promise<void> }).stopTestServers = stop
}
