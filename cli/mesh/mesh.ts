import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { specNamed } from '../../mesh/registry.ts'
import { type CliCommand, type ConnectionOptions, connect } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert, print, printJson, printNote } from '../ui/terminal.ts'
import { addAgentCommand } from './agent.ts'
import { addAuditCommand } from './audit.ts'
import { addDevicesCommand, addEnrollCommand } from './devices.ts'

/** `nightshift mesh`: devices, their agent, and the comparison of their journals with the log. */

export function addMeshCommand(program: CliCommand): void {
  const parent = program
    .command('mesh')
    .description('devices, and the agent that runs on each')
    .addHelpText('after', '\nExample:\n  nightshift mesh devices\n  nightshift mesh call node-osl-1 proc.list')
  addDevicesCommand(parent)
  addEnrollCommand(parent)
  addRevokeCommand(parent)
  addCallCommand(parent)
  addAuditCommand(parent)
  addAgentCommand(parent)
}

function addCallCommand(parent: CliCommand): void {
  parent
    .command('call')
    .description('call one tool of a device; only an approved run may write with it')
    .argument('<on>', 'the node, host, VM or device')
    .argument('<tool>', 'as fs_read, fs.read, exec')
    .argument('[args]', 'JSON of its arguments', parseObject, {})
    .connected(
      '\nExample:\n  nightshift mesh call node-osl-1 fs.read \'{"path":"/var/log/app.log"}\'\n  nightshift mesh call node-osl-1 exec \'{"argv":["uptime"]}\'',
    )
    .action(async (on: string, tool: string, args: Record<string, unknown>, options: ConnectionOptions) => {
      const spec = specNamed(tool)
      if (!spec) throw new CommandFailed('usage', `There is no device tool ${inert(tool)}.`)
      const { api } = connect(options)
      const path = `/api/v1/devices/${encodeURIComponent(on)}/calls`
      const answer = (await api.post(path, { capability: spec.capability, args })) as Record<string, unknown>
      if (options.json) return printJson(answer)
      const { stdout, stderr, content, ...rest } = answer
      for (const text of [stdout, stderr, content]) {
        if (typeof text === 'string' && text !== '') print(inert(text, { lines: true }).trimEnd())
      }
      printJson(rest)
    })
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Ignores the error of the parser: the text is not JSON, and so not a JSON object.
  }
  throw new InvalidArgumentError('Write a JSON object.')
}

function addRevokeCommand(parent: CliCommand): void {
  parent
    .command('revoke')
    .description('revoke a device for good: it gets no more calls, and no other device can have its name')
    .argument('<name>', 'of the device')
    .option('--reason <text>', 'reason, recorded in the audit log')
    .connected('\nExample:\n  nightshift mesh revoke node-osl-1 --reason stolen')
    .calls(async (api, name: string, options: ConnectionOptions & { reason?: string }) => {
      const path = `/api/v1/devices/${encodeURIComponent(name)}/revoke`
      const answer = await api.post(path, { reason: options.reason ?? null })
      const { revoked } = z.looseObject({ revoked: z.boolean() }).parse(answer)
      if (options.json) return printJson(answer)
      if (!revoked) throw new CommandFailed('conflict', `${inert(name)} is already revoked.`)
      printNote(
        `${inert(name)} gets no more calls. Stop its agent, which still has the manifest and the calls that it received.`,
      )
    })
}
