import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../start/process.ts'

const rootDir = fileURLToPath(new URL('..', import.meta.url))

type ApiProcess = { url: string; residentMb(): number; stop(): Promise<void> }

/** The core API as it is deployed, a separate process, once it takes requests. */
export async function startApi(options: {
  databaseUrl: string
  dir: string
  environment?: Record<string, string>
}): Promise<ApiProcess> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const log = openSync(join(options.dir, 'api.log'), 'a')
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(rootDir, 'api', 'main.ts')], {
    env: {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: options.databaseUrl,
      PORT: String(port),
      LOG_LEVEL: 'error',
      // Nobody listens there: what is measured asks Temporal for nothing.
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      ...options.environment,
    },
    stdio: ['ignore', log, log],
  })
  for (let tries = 0; !(await answers(`${url}/livez`)); tries += 1) {
    if (tries > 300 || child.exitCode !== null)
      throw new Error(`the API did not start:\n${readFileSync(join(options.dir, 'api.log'), 'utf8')}`)
    await sleep(100)
  }
  return { url, residentMb: () => residentMb(child), stop: () => ended(child) }
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}

function residentMb({ pid }: ChildProcess): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exited
}
