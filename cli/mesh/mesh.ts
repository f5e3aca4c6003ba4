import type { Command } from 'commander'
import { addAgentCommand } from './agent.ts'
import { addAuditCommand } from './audit.ts'
import { addCallCommand } from './call.ts'
import { addDevicesCommand } from './devices.ts'
import { addEnrollCommand } from './enroll.ts'
import { addRevokeCommand } from './revoke.ts'

export function addMeshCommand(program: Command): void {
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
