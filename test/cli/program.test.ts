import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Command } from 'commander'
import { buildProgram } from '../../cli/program.ts'
import { runCli } from '../support/run-cli.ts'

test('every command has a description and an example', async () => {
  const leaves = (command: Command): Command[] => [command, ...command.commands.flatMap((each) => leaves(each))]
  const commands = leaves(await buildProgram())
  expect(commands.length).toBeGreaterThan(30)
  for (const command of commands) {
    let help = ''
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
    expect(help).toMatch(/^Usage: .*\n\n\S.*/)
    expect(help).toContain('Example:')
  }
})

test('one command is loaded without the others, with the same help', async () => {
  const { commands } = await buildProgram('incidents')
  expect(commands.filter((command) => command.commands.length > 0).map((command) => command.name())).toEqual([
    'incidents',
  ])
  const of = (from: typeof commands) => from.find((command) => command.name() === 'incidents')?.helpInformation()
  expect(of(commands)).toBe(of((await buildProgram()).commands))
})

test('help names every command, and the exit codes', async () => {
  const [help, codes] = await Promise.all([runCli(['--help']), runCli(['help', 'exit-codes'])])
  for (const name of ['start', 'status', 'doctor', 'incidents', 'approvals', 'ask', 'config', 'ingest', 'lab']) {
    expect(help.stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'))
  }
  expect(codes.stdout).toMatch(/130 +Ctrl-C/)
})

test('the version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
})

/** The script, read once: a process that loads every command takes a second. */
let script: ReturnType<typeof runCli> | null = null
function bashScript() {
  script ??= runCli(['completion', 'bash'])
  return script
}

async function completed(words: string[]): Promise<string[]> {
  const { stdout } = await bashScript()
  const typed = `${stdout}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _nightshift; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', typed], { encoding: 'utf8' }).trim().split('\n')
}

test('bash completes commands, subcommands, and their options', async () => {
  expect(await completed(['nightshift', 'app'])).toEqual(['approvals'])
  expect(await completed(['nightshift', 'approvals', ''])).toEqual(
    expect.arrayContaining(['list', 'show', 'approve', 'deny', 'wait']),
  )
  expect(await completed(['nightshift', 'approvals', 'approve', 'apr_1', '--ed'])).toEqual(['--edit'])
  expect(await completed(['nightshift', 'config', 'set', '--rea'])).toEqual(['--reason'])
})

test('fish is offered the same words as bash', async () => {
  const { stdout } = await runCli(['completion', 'fish'])
  expect(stdout).toMatch(/^complete --command nightshift /m)
  for (const [, path, words] of (await bashScript()).stdout.matchAll(/^ +'(.*)'\) words='(.*)' ;;$/gm)) {
    expect(stdout).toContain(`case '${path}'\n                set words ${words}\n`)
  }
})

test('help is in groups, each command on one line of 80 columns, and needs no command to be loaded', async () => {
  const { commands } = await buildProgram('')
  expect(commands.every((command) => command.commands.length === 0)).toBe(true)
  const { stdout } = await runCli([])
  expect((await runCli(['--help'])).stdout).toBe(stdout)
  expect(stdout).toMatch(/^Every day:\n {2}status +\S/m)
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  for (const command of commands) {
    expect(command.summary()).not.toBe('')
    expect(stdout).toContain(`  ${command.name()} `)
  }
})

test('a parent command alone prints its help and ends with 0, and an unknown option names the help of its command', async () => {
  expect(await runCli(['incidents'])).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('postmortem'),
  })
  expect(await runCli(['incidents', 'list', '--all'])).toMatchObject({
    code: 2,
    stderr: "error: unknown option '--all'\nSee: nightshift incidents list --help\n",
  })
})

test('every topic that the help names exists, and an unknown topic is refused', async () => {
  const { stdout } = await runCli(['--help'])
  const topics = /Topics: nightshift help (.*)/.exec(stdout)?.[1]?.split(', ') ?? []
  expect(topics.length).toBeGreaterThan(2)
  for (const topic of topics) expect((await runCli(['help', topic])).code).toBe(0)
  expect(await runCli(['help', 'nonsense'])).toMatchObject({ code: 2, stderr: expect.stringContaining('"nonsense"') })
})

test('-q leaves out notes but not errors, and a command that judges other commands keeps their -q', async () => {
  const env = { NIGHTSHIFT_URL: 'http://127.0.0.1:9', NIGHTSHIFT_TOKEN: 'x' }
  expect((await runCli(['incidents', 'list', '-q', '--no-color'], env)).stderr).toContain('✖')
  expect((await runCli(['judge', 'ls', '-q'])).code).toBe(2)
  expect((await runCli(['judge', '--', 'ls', '-q'])).stdout).toContain('ls -q')
})

test('a manual page has the words of the help, and man reads it without a warning', async () => {
  const { stdout } = await runCli(['man', 'approvals'])
  expect(stdout).toMatch(/^\.TH "NIGHTSHIFT-APPROVALS" "1"/)
  expect(stdout).toContain('.SH "nightshift approvals approve"')
  expect(stdout).not.toMatch(/^[.'](?!TH|SH|B|BR|TP|PP)/m)
  const folder = mkdtempSync(join(tmpdir(), 'nightshift-man-'))
  expect(await runCli(['man', '--out', folder])).toMatchObject({ code: 0 })
  expect(readdirSync(folder)).toHaveLength((await buildProgram()).commands.length + 1)
  rmSync(folder, { recursive: true })
})

test('--web prints the address of the page if there is no browser', async () => {
  const env = { NIGHTSHIFT_URL: 'http://127.0.0.1:9', NIGHTSHIFT_TOKEN: 'x' }
  expect(await runCli(['approvals', 'list', '--web'], env)).toMatchObject({
    code: 0,
    stdout: 'http://127.0.0.1:9/approvals\n',
  })
})
