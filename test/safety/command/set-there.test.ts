import { beforeAll, describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { setThere } from '../../../safety/command/surroundings/there.ts'
import { byProgram } from '../../../safety/command/surroundings.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/** What code puts before a program where nobody can look at what it obeys. */

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', 'web-0']) }
const judged = (text: string) => judgeCommand(text, context)
const noHome = 'env HOME=/dev/null XDG_CONFIG_HOME=/dev/null'

beforeAll(loadSql)

describe('in a container and on another host code adds what switches surroundings off', () => {
  test.each([
    ['docker exec web ceph -s', `docker exec web ${noHome} CEPH_CONF=/etc/ceph/ceph.conf ceph -s`],
    ['kubectl exec -it web-0 -- cilium status', `kubectl exec web-0 -- ${noHome} cilium status`],
    ['docker exec web nodetool status | grep DN', `docker exec web ${noHome} nodetool status | grep DN`],
    ['docker exec web vault status', 'docker exec web env VAULT_CONFIG_PATH=/dev/null vault status'],
    [
      'docker exec web redis-cli info',
      'docker exec web env REDISCLI_RCFILE=/dev/null REDISCLI_HISTFILE=/dev/null redis-cli info',
    ],
    ['ssh db1 rbd ls', `ssh db1 '${noHome} CEPH_CONF=/etc/ceph/ceph.conf rbd ls'`],
  ])('%j: %j', (text, rewrite) => {
    expect(judged(text)).toMatchObject({ verdict: 'ask', code: 'SURROUNDINGS', rewrite })
    expect(judged(rewrite).verdict).toBe('run')
  })

  test('a session of psql is limited there as it is here', () => {
    const { rewrite } = judged('docker exec web psql -U postgres -c "select 1"')
    expect(rewrite).toContain("PGOPTIONS='-c default_transaction_read_only=on -c statement_timeout=30s")
    expect(judged(rewrite!)).toMatchObject({ verdict: 'run', environment: {} })
  })

  test.each([
    ['a home that somebody may have', 'docker exec web env HOME=/root XDG_CONFIG_HOME=/root nodetool status'],
    ['half of what it needs', 'docker exec web env HOME=/dev/null nodetool status'],
    ['what another program needs', 'docker exec web env VAULT_CONFIG_PATH=/dev/null ceph -s'],
    ['a session that may write', 'docker exec web env PSQLRC=/dev/null psql -c "select 1"'],
    ['options of a session of its own', `docker exec web env PGOPTIONS='-c x=y' psql -c "select 1"`],
    ['what is set in front does not get into what is inside', `env ${noHome.slice(4)} docker exec web nodetool status`],
    ['nor into a container inside of one', `docker exec web ${noHome} docker exec web nodetool status`],
    ['what the shell sets afterwards counts', `docker exec web ${noHome} sh -c 'HOME=/srv nodetool status'`],
    ['an environment that is dropped again', `docker exec web ${noHome} env -i nodetool status`],
    ['a variable that is taken out again', `docker exec web ${noHome} env -u HOME nodetool status`],
    ['settings of the directory', `docker exec web ${noHome} supervisorctl status`],
    ['what more than looks', 'docker exec web ceph osd set noout'],
    ['a file that it is told to obey', 'docker exec web ceph -c /srv/ceph.conf -s'],
  ])('%s asks: %s', (_, text) => expect(judged(text)).toMatchObject({ verdict: 'ask' }))

  test('a capability of the engine passes the environment, where files cannot be read', () => {
    const inside = (argv: string[]) => judgeArgv(argv, { ...context, canLook: false })
    expect(inside(['ceph', '-s'])).toMatchObject({
      verdict: 'run',
      conditions: [],
      environment: { HOME: '/dev/null', CEPH_CONF: '/etc/ceph/ceph.conf' },
    })
    expect(inside(['supervisorctl', 'status']).verdict).toBe('ask')
    expect(inside(['kubectl', 'get', 'pods']).verdict).toBe('ask')
  })

  test('on this host a text sets none of that', () => expect(judged(`${noHome} df -h`).verdict).toBe('ask'))
})

test('the added settings cover every file that the row names', () => {
  for (const [name, environment] of setThere) {
    const { conditions = [], switches = {} } = byProgram.get(name) ?? {}
    const files = conditions.flatMap((rule) => (rule.kind === 'root_only' ? rule.files : []))
    const elsewhere = files.filter((file) => !file.startsWith('~/'))
    expect([name, elsewhere.every((file) => `${file}` === 'ceph.conf' && environment.CEPH_CONF)]).toEqual([name, true])
    const isHomeless = environment.HOME === '/dev/null' || 'VAULT_CONFIG_PATH' in environment
    expect([name, conditions.length === 0 || isHomeless]).toEqual([name, true])
    if (conditions.length === 0) expect([name, environment]).toEqual([name, switches])
  }
})
