import type { Command } from 'commander'
import { runAgent } from './agent.ts'

export function meshCommand(program: Command): void {
  const parent = program.command('mesh').description('devices, and the agent that runs on each')
  runAgent(parent)
}
