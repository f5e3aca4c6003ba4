import { expect, test } from '@jest/globals'
import { readChanged, sayChanged } from '../../domain/changed.ts'
import { meshSpecs } from '../../mesh/registry.ts'

const sha = (letter: string) => letter.repeat(64)
const file = { sha256: sha('a'), previous_sha256: sha('a'), mode: '0644', previous_mode: '0644', created: false }
const service = (invocation: string, active = 'active') => ({
  unit: 'web.service',
  active,
  sub: 'running',
  type: 'simple',
  result: 'success',
  invocation,
})
const install = (before: string | null, after: string | null) => ({ packages: [{ name: 'jq', before, after }] })
const path = { path: '/srv/app' }

test.each([
  ['fs_write', { ...file, previous_sha256: sha('b') }, path, ['/srv/app has other content']],
  ['fs_write', { ...file, created: true, previous_sha256: null }, path, ['/srv/app is new']],
  ['fs_write', { ...file, previous_mode: '0600' }, path, ['mode of /srv/app: 0600 before, 0644 now']],
  ['fs_write', file, path, []],
  // An older agent does not tell which mode the file had.
  ['fs_write', { ...file, previous_mode: undefined }, path, null],
  ['fs_write', {}, path, null],
  ['git_commit', { commit: sha('c') }, path, [`/srv/app: new commit ${'c'.repeat(12)}`]],
  ['git_revert', { commit: sha('c') }, path, [`/srv/app: taken back by commit ${'c'.repeat(12)}`]],
  ['git_clone', { commit: null }, path, null],
  ['git_push', { up_to_date: true, branch: 'main', remote: 'origin' }, path, []],
  ['git_push', { up_to_date: false, branch: 'main', remote: 'origin' }, path, ['main was pushed to origin']],
  ['service_restart', { before: service('1'), after: service('2') }, {}, ['web.service was restarted']],
  ['service_start', { before: service('1'), after: service('1') }, {}, []],
  ['service_stop', { before: service('1'), after: service('1', 'inactive') }, {}, ['web.service was stopped']],
  ['service_stop', { after: service('1', 'inactive') }, {}, null],
  ['pkg_install', install('1.6', '1.7'), {}, ['jq: 1.6 before, 1.7 now']],
  ['pkg_install', install(null, '1.7'), {}, ['jq: not installed before, 1.7 now']],
  ['pkg_install', install('1.7', '1.7'), {}, []],
  ['proc_kill', { ended: true, name: 'web' }, { pid: 7, signal: 'TERM' }, ['process 7 (web) was sent TERM, and ended']],
  ['proc_kill', { ended: false, name: 'web' }, { pid: 7, signal: 'HUP' }, null],
  [
    'container_restart',
    { id: 'c1', started_at: '2026-11-26T02:00:00Z' },
    { container: 'web' },
    ['the container web was started again at 2026-11-26T02:00:00Z'],
  ],
])('%s that answers %j of %j changed %j', (name, result, input, changed) => {
  const spec = meshSpecs.find((each) => each.name === name)
  expect(spec?.changes?.(result, input) ?? null).toEqual(changed)
})

test('every write on a device except a command can report what it changed', () => {
  const silent = meshSpecs.filter((spec) => spec.effect === 'write' && !spec.changes && !spec.command)
  expect(silent.map(({ name }) => name)).toEqual([])
})

test.each([
  [{ changed: ['a'] }, ['a']],
  [{ changed: [] }, []],
  [{ changed: null }, null],
  [{}, null],
  [null, null],
  // An older platform may have a word of its own under this name.
  [{ changed: 'yes' }, null],
  [{ changed: [1] }, null],
])('an answer %j says that it changed %j', (answer, changed) => {
  expect(readChanged(answer)).toEqual(changed)
})

test.each([
  ['db-1 converged: nothing to change', [], 'db-1 converged: nothing to change'],
  ['db-1 converged', [], 'db-1 converged; nothing had to be changed'],
  ['db-1 converged: n-1: restarted', ['n-1: restarted'], 'db-1 converged: n-1: restarted'],
  [
    'db-1 converged',
    ['n-1: restarted', 'n-2: continued'],
    'db-1 converged; changed: n-1: restarted and n-2: continued',
  ],
  ['db-1 converged', null, 'db-1 converged'],
])('%s that changed %j reads: %s', (said, changed, text) => {
  expect(sayChanged(said, changed)).toBe(text)
})
