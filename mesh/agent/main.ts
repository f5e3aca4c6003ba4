import { flushCompileCache } from 'node:module'
import { keepRenewed } from './renewal.ts'
import { type AgentOptions, startAgent } from './start.ts'

/**
 * The agent's own process: `main.ts '<AgentOptions as JSON>'`. What Node keeps in memory to read TypeScript is half of what an idle
 * agent would hold, so the first life of a process only fills the compile cache, and the second one reads it.
 */
const warm = 'NIGHTSHIFT_AGENT_WARM'
if (process.env.NODE_COMPILE_CACHE && process.env[warm] !== '1' && process.execve) {
  flushCompileCache()
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...process.env,
    [warm]: '1',
  })
}

try {
  const options = JSON.parse(process.argv[2] ?? '{}') as AgentOptions
  const started = await startAgent(options)
  const { status, reason, sandbox } = started.agent.health()
  console.error(
    `Listening on ${started.url}: ${status}${reason ? ` (${reason})` : ''}; reads are confined by ${sandbox}.`,
  )
  const readAgain = async () => {
    await started.reload()
    const { status, reason, manifest_id } = started.agent.health()
    console.error(`Read the manifest again: ${status}, ${manifest_id ?? 'none'}${reason ? ` (${reason})` : ''}.`)
  }
  process.on('SIGHUP', readAgain)
  const renewal = keepRenewed(
    { state: options.state, manifest: options.manifestFile, rootKey: options.rootKeyFile },
    {
      fetched: async (manifest) => {
        if (manifest !== started.agent.health().manifest_id) await readAgain()
      },
      failed: (why) => console.error(`The manifest was not fetched: ${why}`),
    },
  )
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      renewal.stop()
      void started.stop().then(() => process.exit(0))
    })
  }
} catch (error) {
  console.error(`The agent does not start: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
