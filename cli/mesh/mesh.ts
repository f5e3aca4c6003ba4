import type { Command } from 'commander'
import { runAgent } from './agent.ts'
import { auditMesh } from './audit.ts'
import { callDevice } from './call.ts'
import { listDevices } from './devices.ts'
import { enrollDevice } from './enroll.ts'
import { revokeDevice } from './revoke.ts'

export function meshCommand(program: Command): void {
  const parent = program
    .command('mesh')
    .description('devices, and the agent that runs on each')
    .addHelpText('after', '\nExample:\n  nightshift mesh devices\n  nightshift mesh call node-osl-1 proc.list')
  listDevices(parent)
  enrollDevice(parent)
  revokeDevice(parent)
  callDevice(parent)
  auditMesh(parent)
  runAgent(parent)
}
