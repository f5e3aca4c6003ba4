/** Runs a round at once and again so long after each has ended, whatever became of it. Answers how to stop. */
export function startRounds(round: () => Promise<void>, everyMs: number): () => void {
  let timer: NodeJS.Timeout
  let isStopped = false
  const tick = async () => {
    await round()
    if (!isStopped) timer = setTimeout(tick, everyMs)
  }
  timer = setTimeout(tick, 0)
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
