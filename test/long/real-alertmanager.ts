import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, temporaryDirectory } from '../support/directory.ts'

export type RealAlertmanager = {
  url: string
  /** Raises an alert, or says that it ended, the way Prometheus does: by its labels. */
  raise(labels: Record<string, string>, summary: string): Promise<void>
  end(labels: Record<string, string>): Promise<void>
  stop(): Promise<void>
}

function program(): string | undefined {
  const onPath = (process.env.PATH ?? '')
    .split(':')
    .flatMap((directory) => ['prometheus-alertmanager', 'alertmanager'].map((name) => join(directory, name)))
  return [process.env.ALERTMANAGER ?? '', ...onPath].find((path) => path !== '' && existsSync(path))
}

/**
 * A real Alertmanager that notifies the given webhook at once and repeats after a day. Throws when there is none: Debian's
 * package is `prometheus-alertmanager`.
 */
export async function startAlertmanager(webhook: { url: string; token: string }): Promise<RealAlertmanager> {
  const binary = program()
  if (!binary)
    throw new Error('No Alertmanager: apt-get install prometheus-alertmanager, or set ALERTMANAGER to its path.')
  const directory = temporaryDirectory()
  const port = await freePort()
  const config = join(directory.path, 'alertmanager.yml')
  writeFileSync(config, configFor(webhook))
  const child = spawn(
    binary,
    [
      `--config.file=${config}`,
      `--storage.path=${join(directory.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
    ],
    { stdio: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}`
  await ready(url, child)
  const post = async (alerts: object[]) => {
    const answer = await fetch(`${url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts),
    })
    if (!answer.ok) throw new Error(`Alertmanager answered ${answer.status}: ${await answer.text()}`)
  }
  const began = new Map<string, string>()
  const hourAhead = () => new Date(Date.now() + 3_600_000).toISOString()
  return {
    url,
    async raise(labels, summary) {
      const startsAt = new Date().toISOString()
      began.set(JSON.stringify(labels), startsAt)
      await post([{ labels, annotations: { summary }, startsAt, endsAt: hourAhead() }])
    },
    async end(labels) {
      const startsAt = began.get(JSON.stringify(labels))
      await post([{ labels, annotations: {}, startsAt, endsAt: new Date().toISOString() }])
    },
    async stop() {
      child.kill('SIGKILL')
      directory.remove()
    },
  }
}

function configFor({ url, token }: { url: string; token: string }): string {
  return `
route:
  receiver: nightshift
  group_by: ['...']
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 24h
receivers:
  - name: nightshift
    webhook_configs:
      - url: ${url}
        send_resolved: true
        http_config:
          authorization:
            credentials: ${token}
`
}

async function ready(url: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if (child.exitCode !== null) throw new Error(`Alertmanager ended with ${child.exitCode}`)
    const answer = await fetch(`${url}/-/ready`).catch(() => null)
    if (answer?.ok) return
    await sleep(200)
  }
  throw new Error('Alertmanager did not become ready')
}
