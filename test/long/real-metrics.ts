import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { freePort, temporaryDirectory } from '../support/directory.ts'

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
  return ready(`http://127.0.0.1:${port}`, '/-/ready', instance, children, directory.remove)
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
      // What was scraped a second ago is answered.
      '-search.latencyOffset=0s',
    ]),
  ]
  return ready(`http://127.0.0.1:${port}`, '/health', instance, children, directory.remove)
}

function start(program: string, args: string[]): ChildProcess {
  return spawn(findProgram(program) as string, args, { stdio: 'ignore', env: { PATH: process.env.PATH ?? '' } })
}

async function ready(
  url: string,
  path: string,
  instance: string,
  children: ChildProcess[],
  remove: () => void,
): Promise<Metrics> {
  const untilMs = Date.now() + 60_000
  for (;;) {
    const answer = await fetch(`${url}${path}`).catch(() => null)
    const count = answer?.ok
      ? await fetch(`${url}/api/v1/query?query=count_over_time(up[1m])`).then((found) => found.json())
      : null
    const value = (count as { data?: { result?: { value?: [number, string] }[] } } | null)?.data?.result?.[0]
      ?.value?.[1]
    // VictoriaMetrics puts points on whole steps: there has to be a sample before the last of them.
    if (Number(value) >= 20) break
    if (Date.now() > untilMs) throw new Error(`${url} is not ready after a minute`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
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
