import { z } from 'zod'
import { defineSpec, type Look, ofCommand, path, present, same } from './spec.ts'

const argv = z.array(z.string().min(1).max(8_000)).min(1).max(200)

/** The guest is reached by its name; Proxmox's containers go by their number. */
function inGuest(guest: string, by: 'docker' | 'pct', words: string[], cwd: string | undefined): Look | string {
  if (cwd !== undefined) return 'a directory (cwd) cannot be set'
  if (by === 'docker') return { capability: 'docker.container.exec', args: { container: guest, argv: words } }
  const number = /^vm-([1-9]\d{2,8})$/.exec(guest)?.[1]
  return number
    ? { capability: 'shell.exec', args: { argv: ['pct', 'exec', number, '--', ...words] } }
    : `${guest} is no guest with a number`
}

export const exec = defineSpec({
  name: 'exec',
  capability: 'shell.exec',
  about: 'Run one program with its arguments on a device, without a shell: no pipes, redirects or globs.',
  input: z.strictObject({ argv, cwd: path.optional() }),
  ...{ effect: 'write', risk: 'medium', reversible: false, inside: true, rehearses: true },
  proof: ofCommand,
  command: { field: 'argv', form: 'argv', directory: { field: 'cwd', otherwise: '/' } },
  throughHost: (guest, by, input: { argv: string[]; cwd?: string }) => inGuest(guest, by, input.argv, input.cwd),
  toArgs: ({ argv, cwd }) => present({ argv, cwd }),
  toOutput: same,
  summary: ({ argv }) => `Run ${JSON.stringify(argv)}`,
})

export const shellEval = defineSpec({
  name: 'shell_eval',
  capability: 'shell.eval',
  about:
    'Run a bash text on a device: pipes, redirects, here-documents. Only where exec and the other device tools do not do.',
  input: z.strictObject({ command: z.string().min(1).max(32_000), cwd: path.optional() }),
  ...{ effect: 'write', risk: 'medium', reversible: false, inside: true, streams: true, rehearses: true },
  proof: ofCommand,
  command: { field: 'command', form: 'bash', directory: { field: 'cwd', otherwise: '/' } },
  throughHost: (guest, by, input: { command: string; cwd?: string }) =>
    inGuest(guest, by, ['/bin/bash', '--noprofile', '--norc', '-c', input.command], input.cwd),
  toArgs: ({ command, cwd }) => present({ text: command, cwd }),
  toOutput: same,
  summary: ({ command }) =>
    `Run in bash: ${command.length > 200 ? `${command.slice(0, 200).toWellFormed()}…` : command}`,
})
