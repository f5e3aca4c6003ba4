import type { EventKind } from '../domain/event.ts'

export type Tone = 'critical' | 'warning' | 'info' | 'good' | 'lamp' | 'quiet'
export type Shape = 'disc' | 'ring' | 'triangle' | 'diamond' | 'square' | 'check' | 'cross' | 'bar' | 'half' | 'arrow'

/** Every kind of row: its word, its sign. A kind that is added to the log does not compile until it stands here. */
export const kinds: Record<EventKind, { word: string; shape: Shape; tone: Tone }> = {
  alert_received: { word: 'alert', shape: 'triangle', tone: 'warning' },
  looked: { word: 'look', shape: 'ring', tone: 'info' },
  noted: { word: 'noted', shape: 'bar', tone: 'quiet' },
  claimed: { word: 'claimed', shape: 'half', tone: 'info' },
  context_assembled: { word: 'context', shape: 'ring', tone: 'quiet' },
  model_answered: { word: 'model', shape: 'square', tone: 'info' },
  model_failed: { word: 'model failed', shape: 'cross', tone: 'warning' },
  correction_sent: { word: 'correction', shape: 'arrow', tone: 'warning' },
  call_judged: { word: 'judged', shape: 'bar', tone: 'quiet' },
  tool_started: { word: 'call', shape: 'arrow', tone: 'info' },
  tool_output: { word: 'output', shape: 'bar', tone: 'quiet' },
  tool_finished: { word: 'result', shape: 'disc', tone: 'info' },
  step_started: { word: 'step', shape: 'arrow', tone: 'quiet' },
  step_finished: { word: 'step done', shape: 'disc', tone: 'quiet' },
  verification: { word: 'verification', shape: 'check', tone: 'good' },
  approval_requested: { word: 'asked', shape: 'diamond', tone: 'lamp' },
  approval_decided: { word: 'decided', shape: 'diamond', tone: 'good' },
  approval_expired: { word: 'expired', shape: 'cross', tone: 'warning' },
  approval_withdrawn: { word: 'withdrawn', shape: 'cross', tone: 'quiet' },
  grant_used: { word: 'approval used', shape: 'diamond', tone: 'quiet' },
  hint_confirmed: { word: 'hint holds', shape: 'check', tone: 'good' },
  hint_diverged: { word: 'hint fails', shape: 'cross', tone: 'warning' },
  budget_ended: { word: 'budget', shape: 'bar', tone: 'warning' },
  security_event: { word: 'security', shape: 'triangle', tone: 'critical' },
  resolved: { word: 'resolved', shape: 'check', tone: 'good' },
  escalated: { word: 'escalated', shape: 'arrow', tone: 'critical' },
  cancelled: { word: 'cancelled', shape: 'cross', tone: 'quiet' },
  capability_gap: { word: 'gap', shape: 'ring', tone: 'warning' },
  commented: { word: 'note', shape: 'ring', tone: 'quiet' },
  notified: { word: 'notified', shape: 'arrow', tone: 'quiet' },
}

const paths: Record<Shape, string> = {
  disc: 'M6 1a5 5 0 1 0 .01 0z',
  ring: 'M6 1a5 5 0 1 0 .01 0zM6 3a3 3 0 1 1-.01 0z',
  triangle: 'M6 .8 11.6 11H.4z',
  diamond: 'M6 .4 11.6 6 6 11.6.4 6z',
  square: 'M1.5 1.5h9v9h-9z',
  check: 'M.8 6.6 2.3 5l2.5 2.5 5-5.4 1.5 1.4-6.4 7z',
  cross: 'M2.3.9 6 4.6 9.7.9l1.4 1.4L7.4 6l3.7 3.7-1.4 1.4L6 7.4l-3.7 3.7L.9 9.7 4.6 6 .9 2.3z',
  bar: 'M0 4.5h12v3H0z',
  half: 'M6 1a5 5 0 1 0 .01 0zM6 3v6a3 3 0 0 0 0-6z',
  arrow: 'M1 4.8h5.2V1.6L11.4 6l-5.2 4.4V7.2H1z',
}

/** A sign with its word: shape, colour and text say the same, so that none is needed alone. */
export function Mark({ shape, tone, word, strong }: { shape: Shape; tone: Tone; word: string; strong?: boolean }) {
  return (
    <span className={`mark tone-${tone}${strong ? ' strong' : ''}`}>
      <Sign shape={shape} />
      {word}
    </span>
  )
}

export function Sign({ shape }: { shape: Shape }) {
  return (
    <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" fill="currentColor" fillRule="evenodd">
      <path d={paths[shape]} />
    </svg>
  )
}
