import { join, relative } from 'node:path'
import type { Command } from 'commander'
import type { Running } from '../start/everything.ts'
import { demo } from './demo/demo.ts'
import { modelName } from './sentence.ts'
import { data, note, paint } from './terminal.ts'
import { command, rootDir, stateDir } from './where.ts'

export function startCommand(program: Command): void {
  program
    .command('start')
    .description('start everything here, then show it at work on two real faults in the lab')
    .option('--no-demo', 'start only; break nothing')
    .option('--demo', 'break things even while approvals are pending')
    .addHelpText('after', '\nExample:\n  npm start\n  nightshift start --no-demo')
    .action(async (options: { demo?: boolean }, self: Command) => {
      // Absent, --demo means: unless something is pending.
      const asked = self.getOptionValueSource('demo') === 'cli' ? options.demo : undefined
      const env = process.env
      // Heavy, and of no use to the help.
      const [{ runInForeground }, { terminalReport }] = await Promise.all([
        import('../start/foreground.ts'),
        import('../start/terminal.ts'),
      ])
      process.exitCode = await runInForeground(
        { rootDir, env, stateDir: stateDir() },
        terminalReport(process.stdout),
        async (running, signal) => {
          data(places(running, env))
          if (asked !== false) await show(running, env, asked === true, signal)
          if (!signal.aborted) data(`\n${paint('bold', 'Nightshift keeps running; Ctrl-C stops everything.')}`)
        },
      )
    })
}

/** A show that fails must not take the system down with it. */
async function show({ run }: Running, env: NodeJS.ProcessEnv, again: boolean, signal: AbortSignal): Promise<void> {
  if (env.AGENT_ENABLED && !['true', '1'].includes(env.AGENT_ENABLED)) {
    data('\n  The agent is off (AGENT_ENABLED), so nothing is broken for show: nobody would investigate.')
    return
  }
  try {
    await demo(run, { again, signal })
  } catch (error) {
    if (signal.aborted) return
    note(`\nThe demo ended early: ${error instanceof Error ? error.message : String(error)}`)
    note(`Everything still runs. "${command('doctor')}" tells what is reachable; "start --demo" plays it again.`)
  }
}

function places({ run }: Running, env: NodeJS.ProcessEnv): string {
  const state = relative(process.cwd(), stateDir()) || '.'
  const model = env.LLM_BASE_URL
    ? `${env.LLM_MODEL ?? 'the default model'} at ${env.LLM_BASE_URL}`
    : modelName('runbook-rules')
  const lines: [string, string][] = [
    ['API', `${run.url}/docs`],
    ['Temporal', run.temporalUiUrl ?? run.temporalAddress],
    ['Model', model],
    ['Tokens', join(state, 'run.json')],
    ['Logs', join(state, 'logs')],
    ['Commands', command('help')],
  ]
  return [
    `\n${paint('bold', 'Nightshift is ready.')}`,
    ...lines.map(([name, text]) => `  ${paint('dim', name.padEnd(9))} ${text}`),
  ].join('\n')
}
