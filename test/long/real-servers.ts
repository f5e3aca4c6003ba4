import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

export type RealAlertmanager = {
  url: string
  /** Raises an alert, or says that it ended, the way Prometheus does: by its labels. */
  raise(labels: Record<string, string>, summary: string): Promise<void>
  end(labels: Record<string, string>): Promise<void>
  /** The same for many at once. */
  raiseAll(all: readonly Record<string, string>[], summary: string): Promise<void>
  endAll(all: readonly Record<string, string>[]): Promise<void>
  stop(): Promise<void>
}

function alertmanagerProgram(): string | undefined {
  const onPath = (process.env.PATH ?? '')
    .split(':')
    .flatMap((directory) => ['prometheus-alertmanager', 'alertmanager'].map((name) => join(directory, name)))
  return [process.env.ALERTMANAGER ?? '', ...onPath].find((path) => path !== '' && existsSync(path))
}

/**
 * A real Alertmanager that notifies the given webhook at once and repeats after a day, each alert
 * alone unless it is to group them. Throws when there is none: Debian's package is
 * `prometheus-alertmanager`.
 */
export async function startAlertmanager(
  webhook: { url: string; token: string; groupBy?: string } | { configuration: string },
): Promise<RealAlertmanager> {
  const binary = alertmanagerProgram()
  if (!binary)
    throw new Error('No Alertmanager: apt-get install prometheus-alertmanager, or set ALERTMANAGER to its path.')
  const directory = temporaryDirectory()
  const port = await freePort()
  const config = join(directory.path, 'alertmanager.yml')
  writeFileSync(config, 'configuration' in webhook ? webhook.configuration : configFor(webhook))
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
  await alertmanagerIsReady(url, child)
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
  const raiseAll: RealAlertmanager['raiseAll'] = async (all, summary) => {
    const startsAt = new Date().toISOString()
    for (const labels of all) began.set(JSON.stringify(labels), startsAt)
    await post(all.map((labels) => ({ labels, annotations: { summary }, startsAt, endsAt: hourAhead() })))
  }
  const endAll: RealAlertmanager['endAll'] = async (all) => {
    const endsAt = new Date().toISOString()
    await post(all.map((labels) => ({ labels, annotations: {}, startsAt: began.get(JSON.stringify(labels)), endsAt })))
  }
  return {
    url,
    raiseAll,
    endAll,
    raise: (labels, summary) => raiseAll([labels], summary),
    end: (labels) => endAll([labels]),
    async stop() {
      child.kill('SIGKILL')
      directory.remove()
    },
  }
}

function configFor({ url, token, groupBy = '...' }: { url: string; token: string; groupBy?: string }): string {
  return `
route:
  receiver: nightshift
  group_by: ['${groupBy}']
  group_wait: ${groupBy === '...' ? '0s' : '3s'}
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

async function alertmanagerIsReady(url: string, child: ChildProcess): Promise<void> {
  await eventually('Alertmanager to be ready', async () => {
    if (child.exitCode !== null) throw new Error(`Alertmanager ended with ${child.exitCode}`)
    return (await fetch(`${url}/-/ready`).catch(() => null))?.ok
  })
}

/** Servers that Debian packages: `prometheus`, `prometheus-node-exporter`, `victoria-metrics`. */
export type Metrics = { url: string; instance: string; stop(): Promise<void> }

/** The path of a program, or null where it is not installed. */
export function findProgram(name: string): string | null {
  const places = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name))
  return places.find((path) => existsSync(path)) ?? null
}

/** A node exporter and a Prometheus that scrapes it each second, with a rule that fires. */
export async function startPrometheus(): Promise<Metrics> {
  const directory = temporaryDirectory()
  const [port, exporterPort] = [await freePort(), await freePort()]
  const instance = `127.0.0.1:${exporterPort}`
  mkdirSync(join(directory.path, 'data'))
  writeFileSync(
    join(directory.path, 'rules.yml'),
    'groups:\n  - name: lab\n    rules:\n      - alert: ExporterLives\n        expr: up{job="node"} == 1\n        labels: { severity: info }\n',
  )
  writeFileSync(
    join(directory.path, 'prometheus.yml'),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }\nrule_files: [rules.yml]\nscrape_configs:\n  - job_name: node\n    static_configs: [{ targets: ['${instance}'] }]\n`,
  )
  const children = [
    start('prometheus-node-exporter', [`--web.listen-address=${instance}`]),
    start('prometheus', [
      `--config.file=${join(directory.path, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(directory.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]),
  ]
  return metricsAreReady(`http://127.0.0.1:${port}`, '/-/ready', instance, children, directory.remove)
}

/** The same, scraped by VictoriaMetrics. */
export async function startVictoriaMetrics(): Promise<Metrics> {
  const directory = temporaryDirectory()
  const [port, exporterPort] = [await freePort(), await freePort()]
  const instance = `127.0.0.1:${exporterPort}`
  writeFileSync(
    join(directory.path, 'scrape.yml'),
    `global: { scrape_interval: 1s }\nscrape_configs:\n  - job_name: node\n    static_configs: [{ targets: ['${instance}'] }]\n`,
  )
  const children = [
    start('prometheus-node-exporter', [`--web.listen-address=${instance}`]),
    start('victoria-metrics', [
      `-storageDataPath=${join(directory.path, 'data')}`,
      `-httpListenAddr=127.0.0.1:${port}`,
      `-promscrape.config=${join(directory.path, 'scrape.yml')}`,
      // A sample of a second ago is answered.
      '-search.latencyOffset=0s',
    ]),
  ]
  return metricsAreReady(`http://127.0.0.1:${port}`, '/health', instance, children, directory.remove)
}

function start(program: string, args: string[]): ChildProcess {
  return spawn(findProgram(program) as string, args, { stdio: 'ignore', env: { PATH: process.env.PATH ?? '' } })
}

async function metricsAreReady(
  url: string,
  path: string,
  instance: string,
  children: ChildProcess[],
  remove: () => void,
): Promise<Metrics> {
  await eventually(`${url} to have scraped twenty times`, async () => {
    const answer = await fetch(`${url}${path}`).catch(() => null)
    const count = answer?.ok
      ? await fetch(`${url}/api/v1/query?query=count_over_time(up[1m])`).then((found) => found.json())
      : null
    const value = (count as { data?: { result?: { value?: [number, string] }[] } } | null)?.data?.result?.[0]
      ?.value?.[1]
    // VictoriaMetrics puts points on whole steps: there has to be a sample before the last of them.
    return Number(value) >= 20
  })
  return {
    url,
    instance,
    async stop() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(
        children.map((child) => child.exitCode ?? new Promise((resolve) => child.once('exit', resolve))),
      )
      remove()
    },
  }
}

const systemdProgram = '/lib/systemd/systemd'
const journal = '/run/log/journal'

/** Why this machine can run no manager; null when it can. */
export function whyNoSystemd(): string | null {
  if (!existsSync(systemdProgram)) return 'no systemd: apt-get install systemd'
  return process.getuid?.() === 0 ? null : 'a manager of systemd takes root here'
}

/**
 * The machine need not have been started by systemd: the manager believes that it was, in its own
 * view of /run. It and its services get control groups of their own, which end with it. A real
 * journald listens there; it knows a unit by the name of its control group, so the groups begin
 * with a slice, and keeps its journal where journalctl of the whole machine reads.
 */
const begin = `set -e
mkdir -p /run/systemd; mount -t tmpfs none /run/systemd; mkdir -p /run/systemd/system /run/systemd/journal
/lib/systemd/systemd-journald >/dev/null 2>&1 & echo $! > "$1/journald.pid"
for n in $(seq 50); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.1; done
for at in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [ -w $at/cgroup.procs ] || continue
  mkdir -p $at/$2; echo $$ > $at/$2/cgroup.procs
done
exec env -i PATH="$PATH" HOME="$1" XDG_RUNTIME_DIR="$1/run" XDG_CONFIG_HOME="$1/config" ${systemdProgram} --user --unit=basic.target --log-target=console`

export type RealSystemd = {
  /** Where its manager listens: XDG_RUNTIME_DIR. */
  runtime: string
  /** Writes a unit and has the manager read it. */
  define(unit: string, text: string): void
  systemctl(...words: string[]): string
  stop(): Promise<void>
}

/** A real manager of systemd, as a user has one. Call `whyNoSystemd` first. */
export async function startSystemd(): Promise<RealSystemd> {
  const directory = temporaryDirectory()
  const group = `nightshift-${process.pid}.slice`
  const hadJournal = existsSync(journal)
  const units = join(directory.path, 'config/systemd/user')
  const runtime = join(directory.path, 'run')
  mkdirSync(units, { recursive: true })
  mkdirSync(runtime, { mode: 0o700 })
  const child = spawn('unshare', ['--mount', 'sh', '-c', begin, 'sh', directory.path, group], { stdio: 'ignore' })
  const systemctl = (...words: string[]) =>
    execFileSync('systemctl', ['--user', ...words], {
      env: { PATH: process.env.PATH ?? '', XDG_RUNTIME_DIR: runtime, LC_ALL: 'C' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  await eventually('the manager of systemd', () => {
    try {
      return systemctl('is-active', 'basic.target').trim() === 'active'
    } catch {
      return false
    }
  })
  return {
    runtime,
    systemctl,
    define(unit, text) {
      writeFileSync(join(units, unit), text)
      systemctl('daemon-reload')
    },
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      systemctl('exit')
      await gone
      process.kill(Number(readFileSync(join(directory.path, 'journald.pid'), 'utf8')), 'SIGKILL')
      if (!hadJournal) rmSync(journal, { recursive: true, force: true })
      for (const at of ['/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified', '/sys/fs/cgroup'])
        if (existsSync(join(at, group))) removeGroups(join(at, group))
      directory.remove()
    },
  }
}

/** Control groups are directories whose files cannot be removed. */
function removeGroups(path: string): void {
  const below = execFileSync('find', [path, '-depth', '-type', 'd'], { encoding: 'utf8' }).trim().split('\n')
  for (const each of below) {
    try {
      rmdirSync(each)
    } catch {
      // The kernel lets go of it a moment later.
    }
  }
}
