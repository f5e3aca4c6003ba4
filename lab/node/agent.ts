import { unifiedDiff } from '../../mesh/agent/replace.ts'
import { startAgent } from '../../mesh/agent/start.ts'
import { readSpecAndSettle } from './program.ts'

// Loads the modules for comparing files, which cannot be loaded after privileges are dropped.
await unifiedDiff('/', null, Buffer.from('a line\n'))

/**
 * Runs the agent of a node's device. The program is the real agent, as the node's own user, in its
 * state directory.
 */
const spec = readSpecAndSettle<{ port: number; aptOptions: string[] }>()

const { url } = await startAgent({
  manifestFile: 'manifest.json',
  rootKeyFile: 'root-key',
  // Passes an absolute path, because some checks run in a copy of these files and still use it.
  state: process.cwd(),
  address: { host: '127.0.0.1', port: spec.port },
  tls: null,
  acceptLostJournal: false,
  aptOptions: spec.aptOptions,
  version: 'lab',
})
process.stdout.write(`${JSON.stringify({ listening: Number(new URL(url).port) })}\n`)
