import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { unprivilegedAccount } from '../../../start/account.ts'
import { postgresPrograms } from '../../../start/postgres-cluster.ts'
import { findTemporalCli } from '../../../start/temporal-cli.ts'
import { findProgram } from '../kinds.ts'

const checkout = join(import.meta.dirname, '../../..')
const run = promisify(execFile)

/**
 * As the official image does it: an empty volume is initialised with POSTGRES_*, then the server
 * runs as its own user.
 */
const postgresEntry = `#!/bin/bash
set -euo pipefail
export LD_LIBRARY_PATH=/usr/local/pgsql/lib PATH=/usr/local/pgsql/bin:$PATH
[ "\${1:-postgres}" = postgres ] || exec "$@"
data=/var/lib/postgresql/18/docker socket=/var/run/postgresql
mkdir -p $socket $data; chown -R postgres $socket /var/lib/postgresql; chmod 700 $data
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
if [ ! -s $data/PG_VERSION ]; then
  (umask 077; printf '%s' "$POSTGRES_PASSWORD" >/tmp/password; chown postgres /tmp/password)
  $as initdb -D $data --username="$POSTGRES_USER" --pwfile=/tmp/password $POSTGRES_INITDB_ARGS
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>$data/pg_hba.conf
  $as pg_ctl -D $data -w -o "-c listen_addresses= -c unix_socket_directories=$socket" start
  PGPASSWORD="$POSTGRES_PASSWORD" psql -h $socket -U "$POSTGRES_USER" -d postgres -c "CREATE DATABASE $POSTGRES_DB"
  $as pg_ctl -D $data -w stop
fi
exec $as postgres -D $data -c listen_addresses='*' -c unix_socket_directories=$socket
`

/** Debian with what the images of other people bring beside their programs, made once. */
async function debian(): Promise<string> {
  const root = join(checkout, '.cache/compose-debian.tar')
  if (existsSync(root)) return root
  mkdirSync(dirname(root), { recursive: true })
  const packages = 'bash,ca-certificates,netcat-openbsd,postgresql-client,util-linux'
  const own = '/etc/apt/sources.list.d/debian.sources'
  const words = [
    '--variant=minbase',
    '--format=tar',
    `--include=${packages}`,
    '--aptopt=APT::Install-Recommends "false"',
  ]
  const left = ['doc', 'man', 'locale'].map((each) => `--dpkgopt=path-exclude=/usr/share/${each}/*`)
  const users = ['postgres', 'temporal'].map(
    (name) => `--customize-hook=chroot "$1" sh -c 'id ${name} || useradd ${name}'`,
  )
  await run(
    'mmdebstrap',
    [...words, ...left, ...users, 'bookworm', `${root}.part`, ...(existsSync(own) ? [own] : [])],
    {
      maxBuffer: 64 * 1024 * 1024,
    },
  )
  renameSync(`${root}.part`, root)
  return root
}

/**
 * Makes the images that docker-compose.yml names and no registry brings here: real programs of the
 * versions that it names, each on Debian under the name of the official one.
 */
export async function makeComposeImages(
  place: string,
  docker: (...words: string[]) => Promise<string>,
  names: { postgres: string; server: string; tools: string },
): Promise<void> {
  await docker('import', await debian(), 'nightshift.local/debian:1')
  const folder = (name: string) => {
    mkdirSync(join(place, name), { recursive: true })
    return (...more: string[]) => join(place, name, ...more)
  }
  const build = async (at: (...more: string[]) => string, tag: string, lines: string[]) => {
    writeFileSync(at('Dockerfile'), `${['FROM nightshift.local/debian:1', ...lines].join('\n')}\n`)
    await docker('build', '--tag', tag, at())
  }
  const postgres = folder('postgres')
  cpSync(await postgresPrograms(unprivilegedAccount(), () => {}), postgres('pgsql'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  writeFileSync(postgres('entry.sh'), postgresEntry)
  await build(postgres, names.postgres, [
    ...['COPY pgsql /usr/local/pgsql', 'COPY entry.sh /entry.sh'],
    ...['VOLUME /var/lib/postgresql', 'ENTRYPOINT ["bash", "/entry.sh"]', 'CMD ["postgres"]', 'STOPSIGNAL SIGINT'],
  ])
  const schema = findProgram("Temporal's schema")!
  const server = folder('server')
  copyFileSync(findProgram('temporal-server')!, server('temporal-server'))
  copyFileSync(join(schema, '../docker/scripts/sh/entrypoint.sh'), server('entrypoint.sh'))
  await build(server, names.server, [
    ...['COPY temporal-server /usr/local/bin/', 'COPY entrypoint.sh /etc/temporal/', 'WORKDIR /etc/temporal'],
    ...['USER temporal', 'CMD ["bash", "/etc/temporal/entrypoint.sh"]'],
  ])
  const tools = folder('tools')
  copyFileSync(findProgram('temporal-sql-tool')!, tools('temporal-sql-tool'))
  const cli = await findTemporalCli({ rootDir: checkout, env: process.env })
  copyFileSync(cli.path, tools('temporal'))
  for (const name of ['temporal', 'temporal-sql-tool']) chmodSync(tools(name), 0o755)
  cpSync(schema, tools('schema'), { recursive: true })
  await run('chmod', ['-R', 'u+w', tools('schema')])
  await build(tools, names.tools, [
    ...['COPY temporal temporal-sql-tool /usr/local/bin/', 'COPY schema /etc/temporal/schema', 'USER temporal'],
  ])
}
