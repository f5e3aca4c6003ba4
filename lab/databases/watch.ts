import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { writeWhole } from '../children.ts'
import { databaseTargetsFile, freePort } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import type { DatabaseDrawer } from './drawer.ts'
import { programPath } from './programs.ts'
import { exporterQueries } from './rules.ts'
import type { LabServer } from './server.ts'

/** Starts an exporter for each database, and adds the exporters to the lab's running Prometheus. */
export async function watchDatabases(lab: Lab, drawer: DatabaseDrawer): Promise<void> {
  const { directory, giveAway } = drawer.place
  const secret = join(directory, 'exporter-password')
  writeFileSync(secret, drawer.secrets.exporter, { mode: 0o600 })
  giveAway(secret)
  writeFileSync(join(directory, 'queries.yaml'), stringify(exporterQueries), { mode: 0o644 })
  const ports = await Promise.all(drawer.servers.map((server) => startExporter(lab, drawer, server)))
  const targets = drawer.servers.map(({ kind, instance }, n) => ({
    targets: [`127.0.0.1:${ports[n]}`],
    labels: { instance, job: kind === 'postgresql' ? 'postgres' : 'mysql' },
  }))
  writeWhole(join(lab.dir, 'monitoring', databaseTargetsFile), JSON.stringify(targets))
}

async function startExporter(lab: Lab, drawer: DatabaseDrawer, server: LabServer): Promise<number> {
  const port = await freePort()
  const { name, kind } = server
  const shared = { port, ready: '/metrics' }
  const listen = `--web.listen-address=127.0.0.1:${port}`
  const { directory } = drawer.place
  if (kind === 'postgresql') {
    await lab.children.start(`exporter-${name}`, 'server.ts', directory, {
      ...shared,
      program: programPath('prometheus-postgres-exporter'),
      args: [listen, '--extend.query-path=queries.yaml'],
      env: {
        DATA_SOURCE_URI: `127.0.0.1:${server.port}/shop?sslmode=disable&application_name=exporter`,
        DATA_SOURCE_USER: 'exporter',
        DATA_SOURCE_PASS_FILE: 'exporter-password',
      },
    })
    return port
  }
  const file = `${name}-exporter.cnf`
  const login = `[client]\nuser=exporter\npassword=${drawer.secrets.exporter}\nhost=127.0.0.1\nport=${server.port}\n`
  writeFileSync(join(directory, file), login, { mode: 0o600 })
  drawer.place.giveAway(join(directory, file))
  await lab.children.start(`exporter-${name}`, 'server.ts', directory, {
    ...shared,
    program: programPath('prometheus-mysqld-exporter'),
    args: [listen, `--config.my-cnf=${file}`],
  })
  return port
}
