import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import type { Command } from 'commander'
import { buildProgram } from '../../cli/program.ts'
import { runCli } from './run-cli.ts'

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
