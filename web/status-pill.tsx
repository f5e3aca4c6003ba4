import { formatNumber } from '../domain/format.ts'
import { useAway } from './api.ts'
import { useLiveState } from './live.tsx'
import { type MarkShape, Sign } from './marks.tsx'
import { useStatus } from './pages/health.tsx'
import { Link } from './router.tsx'

type Look = { shape: MarkShape; word: string; short: string; tone: string }

const everyMs = 30_000

/**
 * Shows whether this page receives events, and whether every part of Nightshift works. Links to
 * Health.
 */
export function StatusPill() {
  const { shape, word, short, tone } = useLook()
  return (
    <Link href="/health" className={`pill ${tone}`}>
      <Sign shape={shape} />
      <span className="visually-hidden">Health: </span>
      <span role="status" className="word">
        {word}
      </span>
      <span aria-hidden="true" className="narrow-only">
        {short}
      </span>
    </Link>
  )
}

function useLook(): Look {
  const stream = useLiveState()
  const isAway = useAway() !== null
  const { data: status, error } = useStatus(everyMs)
  // If requests fail, nothing counts as live, even if the stream sent something recently.
  if (isAway || stream === 'lost') return { shape: 'cross', word: 'Lost: reconnecting…', short: 'Lost', tone: 'lost' }
  if (stream === 'opening' || !status) return { shape: 'ring', word: 'Connecting…', short: '…', tone: '' }
  const failed = [...status.parts, ...status.sources].filter((part) => part.status === 'failed').length
  if (failed > 0) {
    const word = failed === 1 ? '1 part fails' : `${formatNumber(failed)} parts fail`
    return { shape: 'triangle', word, short: `${formatNumber(failed)} lost`, tone: 'lost' }
  }
  // An outdated response does not describe the present, and a part that was not checked is not
  // known to work.
  const isUnknown = error !== null || [...status.parts, ...status.sources].some((part) => part.status === 'unknown')
  if (isUnknown) return { shape: 'ring', word: 'The state of some parts is unknown', short: 'Unknown', tone: '' }
  if (status.paused) return { shape: 'bar', word: 'The agent is paused', short: 'Paused', tone: 'waits' }
  return { shape: 'check', word: 'All parts work', short: 'OK', tone: '' }
}
