import { unifiedDiff } from '../../mesh/agent/replace.ts'
import { startAgent } from '../../mesh/agent/start.ts'
import { readSpecAndSettle } from './program.ts'

// The modules of its first comparison, read before privileges go and they are out of reach.
await unifiedDiff('/', null, Buffer.from('a line\n'))

/** The agent of a node's device: the real one, as the node's own user, in its state directory. */
const spec = readSpecAndSettle<{ port: number; aptOptions: string[] }>()

const { url } = await startAgent({
  manifestFile: 'manifest.json',
  rootKeyFile: 'root-key',
  // Whole, for checks run in a copy below it and name it by that.
  state: process.cwd(),
  address: { host: '127.0.0.1', port: spec.port },
  tls: null,
  acceptLostJournal: false,
  aptOptions: spec.aptOptions,
  version: 'lab',
})
process.stdout.write(`${JSON.stringify({ listening: Number(new URL(url).port) })}\n`)
