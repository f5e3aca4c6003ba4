import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { makeKey } from '../../../package/sign.ts'
import { findTemporalCli } from '../../../start/temporal-cli.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { blocksOf, debianRoot, inRoot } from './debian-root.ts'

const lacking = whyNot('package')
const checkout = join(import.meta.dirname, '../../..')
const page = readFileSync(join(checkout, 'docs/start/package.md'), 'utf8')

/** After the last step: what is on the disk, in memory, and said. */
const measure = `echo "== facts"
du -sm /opt/nightshift | cut -f1
du -sm /opt/nightshift/current/bin/node | cut -f1
for name in api worker agent; do awk '/^VmRSS/ {print int($2 / 1024)}' /proc/$(cat /run/nightshift-$name.pid)/status; done
stat -c %U /proc/$(cat /run/nightshift-api.pid)
nightshift placement plan /opt/nightshift/current/lib/examples/placement.yaml | tail -n 1
nightshift judge 'psql -c "select 1"' | tail -n 1
nightshift knowledge list | wc -l
ls /opt/nightshift/current/lib/node_modules | grep -cE '^(glpk.js|webpack|typescript|swc-loader)$' || true
`

;(lacking ? describe.skip : describe)(`a bare Debian${lacking ? ` (${lacking})` : ''}`, () => {
  const place = temporaryDirectory()
  const root = join(place.path, 'debian')
  const dist = process.env.PACKAGE_DIST ?? join(place.path, 'dist')
  beforeAll(async () => {
    if (!existsSync(dist)) {
      const key = join(place.path, 'key.pem')
      makeKey(key)
      const words = ['bin/run.js', 'package', '--arch', process.arch, '--out', dist, '--key', key]
      execFileSync(process.execPath, words, { cwd: checkout, stdio: 'inherit' })
    }
    debianRoot(root)
    mkdirSync(join(root, 'root/download'))
    for (const file of readdirSync(dist)) cpSync(join(dist, file), join(root, 'root/download', file))
    const temporal = await findTemporalCli({ rootDir: checkout, env: process.env })
    cpSync(temporal.path, join(root, 'usr/local/bin/temporal'))
  })
  afterAll(() => place.remove())

  test('the words of the page lead from nothing to the first read of the host', () => {
    const [fromDebian = '', ...rest] = blocksOf(page)
    const before = sizeOf(root)
    // Where a server of this machine has the port, Debian gives its own the next one.
    const onItsPort = "sed -i 's/^port = .*/port = 5432/' /etc/postgresql/*/main/postgresql.conf"
    const installed = inRoot(root, `set -e\n${fromDebian}${onItsPort}`, { network: true })
    expect(installed.status === 0 ? '' : installed.stderr.slice(-2_000)).toBe('')
    note('PostgreSQL and the rest from Debian', `${sizeOf(root) - before} MB`)

    const steps = rest.filter((block) => !block.includes('--remove'))
    const began = performance.now()
    for (const [index, block] of steps.entries()) writeFileSync(join(root, `root/step-${index}`), block)
    const each = steps.map(
      (_, index) => `(cd /root/download; bash -e /root/step-${index}) || { echo "step ${index} failed"; exit 1; }`,
    )
    const walked = inRoot(root, `${each.join('\n')}\n${measure}`, { network: false })
    const logs = () => ['api', 'worker', 'agent'].map((name) => logOf(root, name)).join('\n')
    expect(walked.status === 0 ? '' : `${walked.stdout.slice(-2_000)}\n${walked.stderr.slice(-2_000)}\n${logs()}`).toBe(
      '',
    )
    const seconds = Math.round((performance.now() - began) / 1_000)
    const [said = '', facts = ''] = walked.stdout.split('== facts\n')
    expect(said).toContain('Nightshift')
    expect(said).toMatch(/Filesystem.*Mounted on/s)
    const [all, node, api, worker, agent, user, plan, verdict, runbooks, unwanted] = facts.trim().split('\n')
    expect([user, plan, verdict, unwanted]).toEqual([
      'nightshift',
      expect.stringContaining('rack-b'),
      expect.stringContaining('READ'),
      '0',
    ])
    expect(Number(runbooks)).toBeGreaterThan(30)
    const archive = readdirSync(dist).find((name) => name.endsWith(`${process.arch}.tar.xz`)) ?? ''
    const download = statSync(join(dist, archive)).size
    note('from install.sh to the first look', `${seconds} s`)
    note('to download', `${(download / 1e6).toFixed(1)} MB`)
    note('in /opt/nightshift', `${all} MB, of it Node ${node} MB`)
    note('memory', `API ${api} MB, worker ${worker} MB, agent ${agent} MB`)
    expect(download).toBeLessThan(45e6)
    expect(Number(all)).toBeLessThan(200)
    expect(Number(agent)).toBeLessThan(85)
  })

  test('if a port is in use, the API names it in one line, with the setting', () => {
    const { stdout } = inRoot(
      root,
      `pg_ctlcluster --skip-systemctl-redirect 15 main start; cd /opt/nightshift/current; set -a; . /etc/nightshift/nightshift.env
PORT=5432 bin/node --disable-warning=ExperimentalWarning lib/api/main.js; echo "ends with $?"`,
      { network: false },
    )
    expect(stdout).toContain('the API cannot listen on port 5432: free it, or set PORT')
    expect(stdout).toContain('ends with 1')
  })

  test('a removal leaves the settings, and a purge nothing but the database', () => {
    const script = `cd /root/download; ${blocksOf(page).at(-1)}
ls -d /opt/nightshift /etc/nightshift /var/lib/nightshift /usr/local/bin/nightshift 2>/dev/null; sh install.sh --remove --purge >/dev/null
ls -d /opt/nightshift /etc/nightshift /var/lib/nightshift* 2>/dev/null; id nightshift nightshift-agent 2>/dev/null; echo end`
    const { stdout } = inRoot(root, script, { network: false })
    expect(stdout.trim().split('\n').slice(1)).toEqual(['/etc/nightshift', '/var/lib/nightshift', 'end'])
  })
})

const sizeOf = (root: string): number => Number(execFileSync('du', ['-smx', root], { encoding: 'utf8' }).split('\t')[0])

function logOf(root: string, name: string): string {
  const file = join(root, `var/log/nightshift-${name}.log`)
  return existsSync(file) ? `${name}: ${readFileSync(file, 'utf8').slice(-1_500)}` : ''
}
