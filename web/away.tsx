import { useEffect } from 'react'
import { useNow } from './now.ts'
import { queryClient } from './query-client.ts'
import { useAway } from './reach.ts'
import { span, timeOfDay } from './time.ts'

const askAgainMs = 5_000

/** Over a page whose server is away: that what stands below is old, how old, and that nobody has to reload. */
export function AwayBanner() {
  const away = useAway()
  const now = useNow()
  const isAway = away !== null
  useEffect(() => {
    // Also once after it came back: what failed meanwhile is asked again.
    const again = () =>
      void queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.error !== null })
    if (!isAway) return again()
    const timer = setInterval(again, askAgainMs)
    return () => clearInterval(timer)
  }, [isAway])
  if (!away) return null
  return (
    <div className="away said wrong" role="alert">
      <strong>{away.why}</strong> What you see is as of {timeOfDay(new Date(away.asOf).toISOString())},{' '}
      <span className="nowrap">{span(now - away.asOf)} ago</span>. The page asks again by itself; what you write is
      kept.
    </div>
  )
}
