import type { CallRun, NextCall } from '../../domain/approval.ts'
import type { EventKind } from '../../domain/event.ts'
import { capitalize, formatSpan } from '../../domain/format.ts'
import { formatNextCall, formatRunOutcome } from '../../domain/format-approval.ts'
import { queryClient } from '../api.ts'
import { useLive } from '../live.tsx'
import { Inert } from '../markdown.tsx'
import { Sign } from '../marks.tsx'
import { Link } from '../router.tsx'
import { useNow } from '../time.ts'

const runKinds: ReadonlySet<EventKind> = new Set<EventKind>([
  ...(['tool_started', 'step_started', 'step_finished', 'tool_output', 'tool_finished', 'verification'] as const),
])

/** Has the card asked again as the steps of its call become rows of the incident. */
export function useRunNews(approvalId: string, incidentId: string | undefined): void {
  useLive((event) => {
    if (event.incidentId === incidentId && runKinds.has(event.kind))
      void queryClient.invalidateQueries({ queryKey: ['approval', approvalId] })
  })
}

const stepSigns = {
  waiting: { shape: 'ring', tone: 'quiet' },
  running: { shape: 'arrow', tone: 'info' },
  done: { shape: 'check', tone: 'good' },
  failed: { shape: 'cross', tone: 'critical' },
  skipped: { shape: 'bar', tone: 'warning' },
} as const satisfies Record<CallRun['steps'][number]['state'], object>

/** What the approved call does, step by step while it runs, and how it ended. */
export function CallRunSteps({ run, incidentId }: { run: CallRun; incidentId: string }) {
  const { steps, output, verification, said, startedAt, endedAt, rows } = run
  const now = useNow()
  const took = (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt)
  const isGood = run.outcome === 'done' && verification?.outcome === 'held'
  const isBad = run.outcome === 'failed' || run.outcome === 'indeterminate' || verification?.outcome === 'not_held'
  return (
    <section className={`said run stack tight ${isGood ? 'good' : isBad ? 'wrong' : ''}`} aria-labelledby="run-title">
      <h2 id="run-title">{endedAt === null ? 'What it does' : 'What it did'}</h2>
      <p className="wraps">
        <span role="status">
          <strong>{formatRunOutcome(run)}</strong> <Inert text={capitalize(said)} />
        </span>{' '}
        <span className="soft small">
          {endedAt === null ? 'since' : 'in'} {formatSpan(took)}{' '}
          {rows.map((seq) => (
            <Link key={seq} href={`/incidents/${incidentId}#e-${seq}`}>
              #{seq}{' '}
            </Link>
          ))}
        </span>
      </p>
      {steps.length > 0 && <RunSteps steps={steps} />}
      {output.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        <section className="exact" aria-label="The last lines that it printed" tabIndex={0}>
          <pre dir="ltr">
            <Inert text={output.join('\n')} />
          </pre>
        </section>
      )}
      {verification && (
        <p className="wraps">
          Looked at afterwards: <Inert text={verification.text} />
        </p>
      )}
    </section>
  )
}

function RunSteps({ steps }: Pick<CallRun, 'steps'>) {
  return (
    <ol className="steps">
      {steps.map(({ step, text, state, detail }) => (
        <li key={step} className="wraps" aria-current={state === 'running' ? 'step' : undefined}>
          <span className={`tone-${stepSigns[state].tone}`}>
            <Sign shape={stepSigns[state].shape} /> {state}
          </span>{' '}
          <Inert text={text} />{' '}
          {state === 'failed' && (
            <span className="soft small">
              <Inert text={detail} />
            </span>
          )}
        </li>
      ))}
    </ol>
  )
}

/** What else the same answer of the agent proposes and nobody is asked about yet: each is judged when its turn comes. */
export function NextCalls({ next }: { next: NextCall[] }) {
  if (next.length === 0) return null
  return (
    <section className="stack tight">
      <h2>What the same answer asks next</h2>
      <ul className="claims">
        {next.map((call) => (
          <li key={call.callId} className="wraps">
            <Inert text={capitalize(formatNextCall(call))} />
          </li>
        ))}
      </ul>
      <p className="soft small">
        This approval is about none of these. Each is judged, and asked about, when its turn comes.
      </p>
    </section>
  )
}
