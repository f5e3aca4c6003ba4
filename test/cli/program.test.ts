import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import type { Command } from 'commander'
import { buildProgram } from '../../cli/program.ts'
import { runCli } from '../support/run-cli.ts'

test('every command has a line about itself and an example', async () => {
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

test('one command is loaded without the others, and knows as much', async () => {
  const one = (await buildProgram('incidents')).commands
  expect(one.map((command) => command.name())).toEqual(['incidents'])
  const all = (await buildProgram()).commands.find((command) => command.name() === 'incidents')
  expect(one[0]?.helpInformation()).toBe(all?.helpInformation())
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

async function completed(words: string[]): Promise<string[]> {
  const { stdout } = await runCli(['completion', 'bash'])
  const script = `${stdout}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _nightshift; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
}

test('bash completes commands, what stands below them, and their options', async () => {
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
  for (const [, path, words] of (await runCli(['completion', 'bash'])).stdout.matchAll(
    /^ +'(.*)'\) words='(.*)' ;;$/gm,
  )) {
    expect(stdout).toContain(`case '${path}'\n                set words ${words}\n`)
  }
})
