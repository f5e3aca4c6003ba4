import { readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { grammars } from '../../../safety/command/grammars/index.ts'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { oddDockerSettings, oddKubeconfig, oddSetting } from '../../../safety/command/surroundings/clients.ts'
import { gitSettingsIn, oddGitSetting } from '../../../safety/command/surroundings/tools.ts'
import { byProgram, type PlaceRule, type ProgramSurroundings } from '../../../safety/command/surroundings.ts'
import { shell } from '../../../safety/command/unwrapped.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

const files = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')

const conditions: { [Kind in PlaceRule['kind']]: (rule: PlaceRule & { kind: Kind }) => string } = {
  root_only: (rule) =>
    `absent or writable only by root: ${files(rule.files)}${rule.up ? ', in this directory and its parents' : ''}`,
  git_settings: () => 'git settings, also of submodules, only describe the repository',
  kubeconfig: () => '`~/.kube/config` starts no program and sends no file',
  docker_settings: () => '`~/.docker/config.json` names no plug-in and no other host',
  java: () => 'the named process runs Java',
  plain_settings: ({ file }) => `\`${file}\` contains only connection data`,
}

function helpOf({ switches, conditions: rules = [], obeysFilesOf, asksWith }: ProgramSurroundings): string {
  const said = rules.map((rule) => (conditions[rule.kind] as (rule: PlaceRule) => string)(rule))
  if (switches) said.push(`set: ${switched(switches)}`)
  if (obeysFilesOf) said.push(`writable only by root: the files of ${files(obeysFilesOf)}`)
  if (asksWith) said.push(`asks with ${files(asksWith)}`)
  return said.join('; ')
}

/** A setting of git is a pair of numbered variables: only its key is of interest. */
function switched(switches: Readonly<Record<string, string>>): string {
  const names = Object.entries(switches).flatMap(([name, value]) => {
    if (/^GIT_CONFIG_(?:COUNT|VALUE_\d+)$/.test(name)) return []
    return [name.startsWith('GIT_CONFIG_KEY_') ? value : value === '' ? `${name}=` : `${name}=${value}`]
  })
  return files(names)
}

const reaches: Record<ProgramSurroundings['reach'], string> = {
  prints: 'files and standard input',
  service: 'a local service',
  network: 'the network',
  mounts: 'the table of mounts',
}

/** The review of all grammars as a table for people; programs with the same row share a line. */
function surroundingsTable(): string {
  const lines = new Map<string, string[]>()
  for (const [name, row] of byProgram) {
    if (!(name.split(' ')[0]! in grammars)) continue
    const cells = [row.obeys ?? '–', row.obeys === undefined ? '–' : helpOf(row), reaches[row.reach], row.manual]
    const rest = cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')
    lines.set(rest, [...(lines.get(rest) ?? []), name])
  }
  const rows = [...lines].map(([rest, names]) => ({
    line: `| ${files([...names].sort())} | ${rest} |`,
    obeys: !rest.startsWith('–'),
  }))
  const head = ['| program | obeys | condition or switch | reaches | manual |', '| --- | --- | --- | --- | --- |']
  const sorted = (obeys: boolean) =>
    rows
      .filter((row) => row.obeys === obeys)
      .map(({ line }) => line)
      .sort()
  return [...head, ...sorted(true), ...sorted(false)].join('\n')
}

beforeAll(() => loadSql())
const context: CommandContext = { knownHosts: new Set(['db-osl-1']), knownNames: new Set(['web']), directory: '/srv' }
const judged = (text: string, changes: Partial<CommandContext> = {}) => judgeCommand(text, { ...context, ...changes })
const pageFile = new URL('../../../docs/reference/grammars.md', import.meta.url)
const page = () => readFileSync(pageFile, 'utf8')

describe('surroundings that programs obey', () => {
  test('every program with a grammar has a row, and each row names its manual', () => {
    expect(Object.keys({ ...shell, ...grammars }).filter((name) => !byProgram.has(name))).toEqual([])
    for (const [name, { manual }] of byProgram) expect([name, manual.length > 4]).toEqual([name, true])
  })

  test('the names in a row are in the grammar', () => {
    for (const [name, { asksWith = [], obeysFilesOf = [], except = [] }] of byProgram) {
      const grammar = grammars[name]
      if (!grammar) continue
      const known = [...optionsOf(grammar), 'operand']
      expect([name, [...asksWith, ...obeysFilesOf].filter((option) => !known.includes(option))]).toEqual([name, []])
      expect([name, except.filter((word) => !(word in (grammar.commands ?? {})))]).toEqual([name, []])
    }
  })

  test('a program that obeys something has a measure against it', () => {
    for (const [name, { obeys, switches, conditions, obeysFilesOf }] of byProgram)
      expect([name, obeys !== undefined]).toEqual([name, Boolean(switches ?? conditions ?? obeysFilesOf)])
  })

  // `UPDATE=1 npm test -- test/safety/command/surroundings` writes the table of the page again.
  test('the page for people has the same rows', () => {
    if (process.env.UPDATE) writeFileSync(pageFile, page().replace(/^\| program \|[\s\S]*\n\|.*$/m, surroundingsTable))
    expect(page()).toContain(surroundingsTable())
  })
})

function optionsOf(grammar: Grammar): string[] {
  return [...Object.keys(grammar.options ?? {}), ...Object.values(grammar.commands ?? {}).flatMap(optionsOf)]
}

test('no command that makes a program obey its surroundings runs without approval', () => {
  const rows: { command: string; class: string }[] = JSON.parse(
    readFileSync(new URL('../../data/commands/surroundings.json', import.meta.url), 'utf8'),
  )
  expect(rows.length).toBeGreaterThan(300)
  expect(new Set(rows.map(({ command }) => command)).size).toBe(rows.length)
  expect(rows.filter(({ command }) => judged(command).verdict === 'run').map(({ command }) => command)).toEqual([])
})

describe('the sandbox is widened for a whole text', () => {
  test.each<[string, string[]]>([
    ['df -h', []],
    ['ss -tln', ['network']],
    ['timeout 5 ip addr', ['network']],
    ['cat /proc/net/dev', ['network']],
    ['findmnt /srv', ['mounts']],
    ['cat /proc/mounts | head -3', ['mounts']],
    ['git status', []],
  ])('%s sees %j', (text, sees) => {
    expect(judged(text)).toMatchObject({ verdict: 'run', sees })
  })

  test.each([
    'ss -tln | grep 5432 | head -3',
    'ss -tln; systemctl status ssh; df -h',
    'ip addr; cat /etc/hosts; ps aux',
    'findmnt -t ext4 | grep srv; df -h; ls /srv',
    'curl -s http://127.0.0.1/health | jq .state',
    'ss -tln; kubectl get pods',
    'ss -tln; psql -c "select 1"',
  ])('%s: nothing in it could use that, so it runs', (text) => {
    expect(judged(text).verdict).toBe('run')
  })

  test.each([
    ['ss -tln; git status', 'git'],
    ['git log -1 && curl -s http://127.0.0.1/health', 'git'],
    ['findmnt; git status', 'git'],
    ['findmnt; systemctl status ssh', 'systemctl'],
    ['findmnt; ss -tln', 'ss'],
    ['ss -tln; findmnt; npm ls', 'npm'],
  ])('%s: %s could, so a person is asked', (text, token) => {
    expect(judged(text)).toMatchObject({ verdict: 'ask', effect: 'read', code: 'SURROUNDINGS', token })
  })
})

describe('a verdict names its basis', () => {
  test('settings of git that could start a program are overridden, and the others are read wherever it may run', () => {
    const verdict = judged('cd app; git -C ../lib status')
    const directories = ['/srv/../lib', '/srv/app/../lib']
    expect(verdict.conditions).toEqual([{ kind: 'git_settings', program: 'git', directories }])
    const { environment } = verdict
    const keys = Object.keys(environment).filter((name) => name.startsWith('GIT_CONFIG_KEY_'))
    expect(environment.GIT_CONFIG_COUNT).toBe(String(keys.length))
    for (const key of ['core.fsmonitor', 'core.hooksPath', 'core.sshCommand', 'core.pager', 'gpg.program'])
      expect(Object.values(environment)).toContain(key)
    expect(environment).toMatchObject({ GIT_ALLOW_PROTOCOL: 'none', GIT_OPTIONAL_LOCKS: '0' })
  })

  test('without a known directory, the place where it is started counts', () => {
    expect(judgeArgv(['git', 'status'], { knownHosts: new Set() }).conditions).toMatchObject([{ directories: [] }])
    expect(judgeArgv(['git', '-Csub', 'status'], { knownHosts: new Set() }).conditions).toMatchObject([
      { directories: ['sub'] },
    ])
  })

  test('a program that obeys nothing has no basis', () => {
    expect(judged('git version; df -h')).toMatchObject({ conditions: [], environment: {}, obeys: [] })
    // As an operand the word means something else.
    expect(judged('git log version').conditions).toHaveLength(1)
  })

  test('a sub-command may obey more than its program', () => {
    const kinds = (text: string) => judged(text).conditions.map(({ kind }) => kind)
    expect(kinds('docker ps')).toEqual(['docker_settings', 'root_only'])
    expect(kinds('docker compose ps')).toEqual(['docker_settings', 'root_only', 'root_only'])
  })

  test('files that its own words name are obeyed as well', () => {
    for (const text of ['haproxy -c -f /srv/x.cfg', 'haproxy -c -f/srv/x.cfg'])
      expect(judged(text).conditions).toContainEqual(
        expect.objectContaining({ kind: 'root_only', files: ['/srv/x.cfg'] }),
      )
    for (const text of ['haproxy -c -f {}', 'git -C {} status', 'git -C a{} log'])
      expect([text, judged(text).code]).toEqual([text, 'SURROUNDINGS'])
    expect(judged('named-checkconf /srv/named.conf').conditions).toContainEqual(
      expect.objectContaining({ files: ['/srv/named.conf'] }),
    )
  })

  test('on another host or in a container only a program that obeys nothing is trusted', () => {
    expect(judged('ssh db-osl-1 df -h')).toMatchObject({ verdict: 'run' })
    expect(judged('ssh db-osl-1 git status')).toMatchObject({ verdict: 'ask', code: 'SURROUNDINGS', token: 'git' })
    // What makes its session read-only does not get there.
    expect(judged('docker exec web psql -c "select 1"')).toMatchObject({ verdict: 'ask', code: 'SURROUNDINGS' })
    expect(judged('env -i git status')).toMatchObject({ verdict: 'ask', code: 'SURROUNDINGS' })
    expect(judged('env -i df -h')).toMatchObject({ verdict: 'run' })
    expect(judged('podman-compose exec web ls')).toMatchObject({
      verdict: 'ask',
      code: 'SURROUNDINGS',
      token: 'podman-compose',
    })
  })

  test('if only the environment is passed, what it switches off runs, and what has to be read asks', () => {
    expect(judged('psql -c "select 1"', { canLook: false }).verdict).toBe('run')
    expect(judged('git status', { canLook: false })).toMatchObject({ verdict: 'ask', code: 'SURROUNDINGS' })
  })

  test.each(['cd ~', 'cd', 'cd -', 'cd -P x', 'cd "$X"', 'cd x y', 'pushd ~'])(
    'after %s nobody knows where git runs',
    (cd) => {
      expect(judged(`${cd}; git status`).verdict).toBe('ask')
    },
  )

  test('a relative cd without a known start leads to an unknown place', () => {
    expect(judged('cd app && git status', { directory: undefined })).toMatchObject({ code: 'SURROUNDINGS' })
    expect(judged('cd /app && git status', { directory: undefined })).toMatchObject({ verdict: 'run' })
  })
})

describe('the executor’s own files are secret', () => {
  const secrets = ['/opt/agent/state', '/opt/keys/tls[1].key']
  test.each([
    'cat /opt/agent/state/refresh.json',
    'cat /opt/agent/stat?/refresh.json',
    'head -1 /opt/agent/x/../state/head.json',
    'cd /opt/agent; cat state/head.json',
    'grep -r x /opt',
    'cat "/opt/keys/tls[1].key"',
    'cat < /opt/agent/state/x',
  ])('%s: asked', (text) => {
    expect(judged(text, { secrets }).verdict).toBe('ask')
  })
  test('nothing else is', () => {
    for (const text of ['cat /opt/agent/readme', 'grep x /opt/other/readme', 'ls /opt/agent'])
      expect([text, judged(text, { secrets }).verdict]).toEqual([text, 'run'])
  })
  test('the usual places are secret too', () => {
    for (const path of ['/var/lib/nightshift-agent/refresh.json', '/etc/nightshift/root.key', '/x/.nightshift/a'])
      expect(judged(`cat ${path}`)).toMatchObject({ code: 'SENSITIVE_PATH' })
  })
})

describe('settings of git', () => {
  const setting = (key: string, value = 'x', origin = 'file:.git/config', scope = 'local') => ({
    key,
    value,
    origin,
    scope,
  })
  const oddIn = (...settings: ReturnType<typeof setting>[]) =>
    oddGitSetting(
      settings,
      (file) => file.startsWith('/etc/'),
      (tree) => tree === '../..',
    )?.key ?? null

  test('that only describe a repository are obeyed', () => {
    const plain = `core.bare core.fileMode remote.origin.url remote.a.b.fetch branch.main.merge user.name submodule.x.url
      extensions.objectFormat pull.rebase color.ui color.diff.meta gc.auto diff.renames status.short safe.directory`
    expect(oddIn(...plain.split(/\s+/).map((key) => setting(key)))).toBeNull()
  })

  test.each(
    `core.fsmonitor core.sshCommand core.hooksPath core.pager core.editor core.gitProxy core.worktree core.attributesFile core.askPass
    core.alternateRefsCommand blame.ignoreRevsFile diff.external diff.x.command diff.x.textconv filter.x.clean filter.x.smudge filter.x.process
    gpg.program gpg.ssh.program alias.status include.path includeIf.gitdir:/.path pager.log credential.helper http.proxy
    remote.x.promisor remote.x.uploadpack remote.x.vcs extensions.partialClone url.x.insteadOf log.showSignature
    status.submoduleSummary submodule.recurse submodule.x.update diff.submodule merge.x.driver uploadpack.packObjectsHook
    protocol.ext.allow trace2.eventTarget core.notes interactive.diffFilter sequence.editor browser.x.cmd`.split(/\s+/),
  )('%s is odd', (key) => {
    expect(oddIn(setting('core.bare'), setting(key))).toBe(key)
  })

  test('are trusted if root wrote them, or the executor did', () => {
    expect(oddIn(setting('core.pager', 'x', 'file:/etc/gitconfig', 'system'))).toBeNull()
    expect(oddIn(setting('core.pager', 'x', 'file:/home/x/.gitconfig', 'global'))).toBe('core.pager')
    expect(oddIn(setting('core.pager', 'x', 'command line:', 'command'))).toBeNull()
  })

  test('may switch the monitor off, and name the work tree of a submodule', () => {
    expect(oddIn(setting('core.fsmonitor', 'false'))).toBeNull()
    expect(oddIn(setting('core.worktree', '../..'))).toBeNull()
    expect(oddIn(setting('core.worktree', '/etc'))).toBe('core.worktree')
  })

  test('are read as git prints them, and not at all in another form', () => {
    expect(gitSettingsIn('local\0file:.git/config\0core.bare\nfalse\0local\0file:.git/config\0alias.x\0')).toEqual([
      setting('core.bare', 'false'),
      setting('alias.x', 'true'),
    ])
    expect(gitSettingsIn('')).toEqual([])
    expect(gitSettingsIn('failed\n')).toBeNull()
    expect(gitSettingsIn('local\0x\0')).toBeNull()
  })
})

describe('settings of other clients', () => {
  test('a kubeconfig connects, and neither starts a program nor sends a file', () => {
    const config = (user: object, cluster = {}) => ({ users: [{ name: 'a', user }], clusters: [{ cluster }] })
    expect(oddKubeconfig(null)).toBeNull()
    expect(oddKubeconfig(config({ token: 'x', 'client-key': '/a' }, { server: 'https://x' }))).toBeNull()
    for (const key of ['exec', 'auth-provider', 'tokenFile', 'Exec'])
      expect(oddKubeconfig(config({ [key]: {} }))).toBe(key)
    expect(oddKubeconfig(config({}, { 'proxy-url': 'http://x' }))).toBe('proxy-url')
    expect(oddKubeconfig('exec')).toBe('it is no kubeconfig')
  })

  test('those of docker lead to no plug-in and no other host', () => {
    expect(oddDockerSettings({ auths: {}, currentContext: 'default', psFormat: '{{.ID}}' })).toBeNull()
    for (const key of ['cliPluginsExtraDirs', 'plugins', 'aliases', 'CurrentContext', 'features'])
      expect(oddDockerSettings({ [key]: {} })).toBe(key)
    expect(oddDockerSettings({ currentContext: 'other' })).toBe('currentContext')
    expect(oddDockerSettings([])).toBe('it is no object')
  })

  test('those of mysql and aws name who connects', () => {
    const keysOf = (program: string) =>
      byProgram.get(program)!.conditions!.flatMap((rule) => (rule.kind === 'plain_settings' ? rule.keys : []))
    const mysql = '# x\n[client]\nuser = a\npassword="b=c"\nssl-ca=/x\nhost=localhost\ncompress\n'
    expect(oddSetting(mysql, keysOf('mysql'))).toBeNull()
    for (const line of ['init-command=x', 'pager=x', 'tee=x', 'plugin-dir=/x', 'host=db', 'init_c=x', '!include /x'])
      expect(oddSetting(`[mysql]\n${line}`, keysOf('mysql'))).toBe(line.split('=')[0])
    expect(oddSetting('[profile a b]\nregion = x\naws_access_key_id=x\n', keysOf('aws'))).toBeNull()
    for (const line of ['credential_process = /x', 'cli_legacy_plugin_path = /x', 'endpoint_url = http://x'])
      expect(oddSetting(`[default]\n${line}`, keysOf('aws'))).toBe(line.split(' = ')[0])
  })
})
