import { z } from 'zod'
import { truncate } from '../../domain/format.ts'
import { describeRun, toText } from '../../domain/say.ts'
import { namesListed } from '../../safety/command/listed-names.ts'
import { boundProcessTable } from './process-table.ts'
import { type DeviceProbe, defineSpec, ofCommand, path, same, withoutUndefined, wordsOnCard } from './spec.ts'

const directory = z
  .string()
  .regex(/^\/[^\0]*$/, 'is not an absolute path')
  .max(4_096)
  .optional()

export const execArgs = z.strictObject({
  argv: z
    .array(
      z
        .string()
        .max(32_768)
        .regex(/^[^\0]*$/, 'holds a NUL'),
    )
    .min(1)
    .max(1_000),
  cwd: directory,
})

export const evalArgs = z.strictObject({
  text: z
    .string()
    .min(1)
    .max(64_000)
    .regex(/^[^\0]*$/, 'holds a NUL'),
  cwd: directory,
})

/**
 * Builds the request for a command in a guest. A Docker container is reached by its name, a
 * container of Proxmox by its number.
 */
function inGuest(guest: string, by: 'docker' | 'pct', words: string[], cwd: string | undefined): DeviceProbe | string {
  if (cwd !== undefined) return 'a directory (cwd) cannot be set'
  if (by === 'docker') return { capability: 'docker.container.exec', args: { container: guest, argv: words } }
  const number = /^vm-([1-9]\d{2,8})$/.exec(guest)?.[1]
  return number
    ? { capability: 'shell.exec', args: { argv: ['pct', 'exec', number, '--', ...words] } }
    : `${guest} is not a guest with a number`
}

const exec = defineSpec({
  name: 'exec',
  capability: 'shell.exec',
  about: 'Run one program with arguments on a device, without a shell.',
  args: execArgs,
  // Limits the arguments of the command to what a person can read on a card.
  input: () => execArgs.extend({ argv: wordsOnCard, cwd: path.optional().describe('default /') }),
  effect: 'write',
  risk: 'medium',
  reversible: false,
  inside: true,
  rehearses: true,
  proof: ofCommand,
  command: { field: 'argv', form: 'argv', directory: { field: 'cwd', otherwise: '/' } },
  throughHost: (guest, by, input: { argv: string[]; cwd?: string }) => inGuest(guest, by, input.argv, input.cwd),
  toArgs: ({ argv, cwd }) => withoutUndefined({ argv, cwd }),
  toOutput: same,
  bound(result, { argv }) {
    const stdout = boundProcessTable(argv, toText(result.stdout))
    return stdout === null ? null : { ...result, stdout }
  },
  summary: ({ argv }) => `Run ${JSON.stringify(argv)}`,
  lists: ({ stdout }, { argv }) => namesListed(argv, toText(stdout)),
  say: (result, { argv }) => `${argv.join(' ')}: ${describeRun(result)}`,
})

const shellEval = defineSpec({
  name: 'shell_eval',
  isRare: true,
  capability: 'shell.eval',
  about:
    'Run a bash text on a device: pipes, redirects, here-documents. Only if exec and the other device tools cannot do it.',
  args: evalArgs,
  // Names the text `command`, as other agent programs do. Allows at most half of the device's
  // limit, because a person reads the text on a card.
  input: () =>
    z.strictObject({
      command: z
        .string()
        .min(1)
        .max(32_000)
        .meta({ description: 'bash text', examples: ['df -h | tail -n 3'] }),
      cwd: path.optional().describe('default /'),
    }),
  effect: 'write',
  risk: 'medium',
  reversible: false,
  inside: true,
  streams: true,
  rehearses: true,
  proof: ofCommand,
  command: { field: 'command', form: 'bash', directory: { field: 'cwd', otherwise: '/' } },
  throughHost: (guest, by, input: { command: string; cwd?: string }) =>
    inGuest(guest, by, ['/bin/bash', '--noprofile', '--norc', '-c', input.command], input.cwd),
  toArgs: ({ command, cwd }) => withoutUndefined({ text: command, cwd }),
  toOutput: same,
  summary: ({ command }) =>
    `Run in bash: ${command.length > 200 ? `${command.slice(0, 200).toWellFormed()}…` : command}`,
  lists: ({ stdout }, { command }) => namesListed(command, toText(stdout)),
  say: (result, { command }) => `${truncate(command.replace(/\s+/g, ' '), 100)}: ${describeRun(result)}`,
})

export const shellSpecs = [exec, shellEval]
