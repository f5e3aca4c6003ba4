import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { filesOf, type Places } from './enrolment.ts'
import { type AgentOptions, startAgent } from './start.ts'

const program = fileURLToPath(new URL('./enrolment.ts', import.meta.url))

/**
 * Milliseconds between renewals of the manifest. A delay of hours is harmless, because a renewal is
 * due only in the second half of a manifest's validity.
 */
const everyMs = 6 * 3_600_000
const afterFailureMs = 10 * 60_000

/**
 * Fetches the device's manifest now and every few hours, and passes on the manifest's id. A child
 * process fetches it, because a TLS client would stay in the memory of an agent that is mostly
 * idle. A device that was not enrolled by token keeps its manifest.
 */
function keepRenewed(
  places: Places,
  on: { fetched(manifest: string): Promise<void>; failed(why: string): void },
): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let child: ReturnType<typeof execFile> | undefined
  // Waits for random times, so that devices that started together, for example after a power cut,
  // do not fetch together.
  const later = (ms: number) => {
    timer = setTimeout(attempt, ms * (0.75 + Math.random() / 2)).unref()
  }

  function attempt(): void {
    child = execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, JSON.stringify(places)],
      { timeout: 60_000, env: process.env },
      (error, stdout, stderr) => {
        if (error) on.failed(stderr.trim() || error.message)
        else void on.fetched(stdout.trim()).catch((why) => on.failed(String(why)))
        later(error && error.code !== 2 ? afterFailureMs : everyMs)
      },
    )
  }

  if (existsSync(filesOf(places).refresh)) attempt()
  return {
    stop() {
      clearTimeout(timer)
      child?.kill()
    },
  }
}

/**
 * The process of the agent: `main.ts '<AgentOptions as JSON>'`. Reading TypeScript costs Node half
 * of an idle agent's memory. The process therefore first fills the compile cache, and then executes
 * itself again to use the cache.
 */
const warm = 'NIGHTSHIFT_AGENT_WARM'
if (process.env.NODE_COMPILE_CACHE && process.env[warm] !== '1' && process.execve) {
  flushCompileCache()
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...process.env,
    [warm]: '1',
  })
}

/** Node's exit code for a start that waits for a promise that never settles. */
const waitsForNothing = 13
process.once('exit', (code) => {
  if (code === waitsForNothing)
    console.error('The agent does not start, because something that it waits for has ended.')
})

try {
  const options = JSON.parse(process.argv[2] ?? '{}') as AgentOptions
  const started = await startAgent(options)
  const readAgain = async () => {
    await started.reload()
    const { status, reason, manifest_id } = started.agent.health()
    console.error(`Read the manifest again: ${status}, ${manifest_id ?? 'none'}${reason ? ` (${reason})` : ''}.`)
  }
  process.on('SIGHUP', readAgain)
  // Prints this only now, because SIGHUP would have ended the process before its handler was added.
  const { status, reason } = started.agent.health()
  const how = options.address === null ? 'Calling out to' : 'Listening on'
  console.error(`${how} ${started.url}: ${status}${reason ? ` (${reason})` : ''}; ${started.confined}.`)
  // Renews nothing for a connected agent, which gets its manifests over the connection.
  const renewal =
    options.address === null
      ? { stop() {} }
      : keepRenewed(
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
