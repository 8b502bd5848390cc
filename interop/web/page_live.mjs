// An answer while it arrives: new words appear, and those already shown do not move.
//
//	node page_live.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, follow, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()

/** Records, at every paint while the answer arrives, the position of each word, and what moved or disappeared. */
const observe = page => page.evaluate(() => {
  const prose = document.querySelector('[data-live] .prose'), places = new Map()
  const seen = globalThis.seen = { moved: [], lengths: new Set(), paints: 0, listeners: document.querySelectorAll('[aria-live]').length }
  const look = () => {
    if (document.querySelector('[data-live].ended')) return // chips may change from now on
    seen.paints++
    const walker = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT), range = document.createRange()
    let text = ''
    for (let node; (node = walker.nextNode());) {
      if (node.parentElement.closest('ibid-cite')) continue
      for (const m of node.data.matchAll(/\S+/g)) {
        range.setStart(node, m.index)
        range.setEnd(node, m.index + 1)
        const r = range.getBoundingClientRect(), at = `${text.length + m.index}`
        const place = [r.left + scrollX, r.top + scrollY], before = places.get(at)
        if (before && before[0] === m[0] && place.some((n, i) => Math.abs(n - before[1][i]) > 1)) seen.moved.push(`${m[0]} from ${before[1]} to ${place}`)
        places.set(at, [m[0], place])
      }
      text += node.data
    }
    seen.lengths.add(text.length)
    requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
})

/** Sums up the layout shifts that the reader did not cause. */
const shifts = page => page.addInitScript(() => {
  globalThis.shifted = 0
  new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.shifted += e.value }).observe({ type: 'layout-shift', buffered: true })
})

const asked = (options, provider, theme) => browser => onPage(browser, world, { ...options, fresh: true }, async page => {
  await shifts(page)
  await page.goto(`${world.base}/ui/ask`)
  assert.deepEqual(await axe(page), [])
  await page.fill('#question', 'How many herons nest at Lake Tonbo?')
  await page.selectOption('#ask-provider', provider)
  if (options.hasTouch) await Promise.all([page.waitForURL('**/ui/conversations/**'), page.locator('.composer .send').tap()])
  else {
    await page.keyboard.press('Tab')
    await page.focus('#question')
    await page.keyboard.press('Shift+Enter')
    assert.equal(await page.inputValue('#question'), 'How many herons nest at Lake Tonbo?\n')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.keyboard.press('Enter')])
  }
  await page.waitForSelector('[data-live] .prose')
  await observe(page)
  assert.equal(await page.getAttribute('[data-live] .answer', 'aria-busy'), 'true')
  assert.equal(await page.getAttribute('.live-log', 'aria-live'), 'polite')
  await page.waitForFunction(() => document.querySelector('[data-live] .prose').textContent.length > 40)
  if (theme) assert.deepEqual(await axe(page), [])
  assert.deepEqual(await overflow(page), [])
  const rows = await page.waitForFunction(() => document.querySelector('[data-live]:not(.ended) .live-sources .source, [data-live].ended .source'))
  assert.ok(rows)
  await page.waitForSelector('[data-live].ended')
  const seen = await page.evaluate(() => ({ ...globalThis.seen, lengths: [...globalThis.seen.lengths] }))
  assert.ok(seen.lengths.length > 3, `the text came at once: ${seen.lengths}`)
  console.log(`  the text was ${seen.lengths.length} times longer in ${seen.paints} paints; ${seen.moved.length} words moved`)
  assert.deepEqual(seen.moved.slice(0, 5), [])
  const shifted = await page.evaluate(() => globalThis.shifted)
  console.log(`  the layout shifted by ${shifted.toFixed(4)}`)
  assert.ok(shifted < 0.02, `the layout shifted by ${shifted}`)
  assert.equal(await page.locator('[data-live] .strip > details:not([open])').count(), 1)
  assert.ok(await page.locator('[data-live] .prose .chip').count() >= 3)
  assert.equal(await page.locator('[data-live] .answer[aria-busy]').count(), 0)
  assert.match(await page.textContent('.live-state'), /complete, with 3 sources/)
  assert.match(await page.textContent('.live-log'), /41 nests/)
  if (theme) assert.deepEqual(await axe(page), [])
  await page.locator('[data-live] .chip').first().click()
  await page.waitForSelector('ibid-card:popover-open')
  assert.match(await page.textContent('ibid-card:popover-open'), /Heron census|birds\.example/)
  const prose = () => page.locator('.prose').last().evaluate(e => { // sentences without a source are only marked when the page is reopened
    const words = e.cloneNode(true)
    for (const n of words.querySelectorAll('ibid-cite, .no-source')) n.remove()
    return [words.textContent.replace(/\s+/g, ' ').trim(), Array.from(e.querySelectorAll('.chip'), c => `${c.className}: ${c.textContent}`)]
  })
  await page.keyboard.press('Escape')
  const live = await prose()
  await page.reload()
  assert.deepEqual(await prose(), live)
  assert.equal(await page.locator('[data-live]').count(), 0)
})

await withBrowser(executablePath, browser => scenarios({
  'words arrive and stay in their places, on a laptop': () => asked(desktop, 'slow', true)(browser),
  'words arrive and stay in their places, on a phone': () => asked(phone, 'slow')(browser),
  'they do when all citations come behind the text': () => asked(desktop, 'slow-gemini')(browser),
  'they do when each citation comes behind its words': () => asked(desktop, 'slow-anthropic')(browser),
  'a card is filled before the answer has ended': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.base}/ui/ask`)
    await page.fill('#question', 'Write a short report on the marsh.')
    await page.selectOption('#ask-provider', 'slow-anthropic')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.keyboard.press('Enter')])
    const card = await page.waitForFunction(() => { // in one step: on a slow machine the answer may end between two steps
      const chip = document.querySelector('[data-live]:not(.ended) .prose ibid-cite:not(.late) .chip')
      chip?.click()
      return chip && document.querySelector('ibid-card:popover-open')?.textContent
    })
    assert.match(await card.jsonValue(), /Area of the marsh/)
    await page.waitForSelector('[data-live].ended')
  }),
  'an answer is stopped, and asked for again': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.base}/ui/ask`)
    await page.fill('#question', 'Write a short report on the marsh.')
    await page.selectOption('#ask-provider', 'slow')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.keyboard.press('Enter')])
    await page.waitForSelector('[data-live] .prose p, [data-live] .prose h2')
    await page.locator('.composer .stop').click()
    await page.waitForSelector('[data-live].ended.broken')
    assert.equal(await page.innerText('.live-word'), 'The answer was stopped.')
    assert.equal(await page.locator('.composer .stop').count(), 0)
    assert.equal(await page.evaluate(() => document.activeElement.id), 'question')
    await follow(page, page.locator('.retry button'))
    await page.waitForSelector('[data-live].ended:not(.broken)')
    assert.match(await page.innerText('.live-word'), /complete/)
    assert.equal(await page.locator('.said.user').count(), 1, 'what was stopped is still there')
  }),
  'what fails stands in the thread, and the question is kept': () => onPage(browser, world, desktop, async page => {
    await page.goto(`${world.base}/ui/ask`)
    await page.fill('#question', 'Say error 429')
    await page.selectOption('#ask-provider', 'slow')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.keyboard.press('Enter')])
    assert.match(await page.innerText('.turn.failed [role=alert]'), /429/)
    assert.equal(await page.innerText('.turn.failed .said-text'), 'Say error 429')
    assert.deepEqual(await axe(page), [])
    await page.reload()
    assert.equal(await page.innerText('.turn.failed .said-text'), 'Say error 429')
  }),
  'a page that is opened while it arrives goes on': () => onPage(browser, world, desktop, async (page, context) => {
    await page.goto(`${world.base}/ui/ask`)
    await page.fill('#question', 'How many herons nest at Lake Tonbo?')
    await page.selectOption('#ask-provider', 'slow')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.locator('.composer .send').click()])
    const other = await context.newPage()
    await other.goto(page.url())
    await page.close()
    await other.waitForSelector('[data-live].ended')
    assert.match(await other.textContent('.prose'), /41 nests this year/)
  }),
  'without scripts, one reloads': () => onPage(browser, world, { ...desktop, javaScriptEnabled: false }, async page => {
    await page.goto(`${world.base}/ui/ask`)
    await page.fill('#question', 'How many herons nest at Lake Tonbo?')
    await page.selectOption('#ask-provider', 'slow')
    await Promise.all([page.waitForURL('**/ui/conversations/**'), page.locator('.composer .send').click()])
    assert.match(await page.textContent('main'), /Reload the page/)
    for (;;) {
      await page.reload()
      if (await page.locator('.sources .source').count() >= 3) break
    }
    await page.locator('.strip summary').click()
    assert.ok(await page.locator('.sources .source').first().isVisible())
    await follow(page, page.locator('.prose .chip').first())
    assert.match(page.url(), /#.*s-1$/)
  }),
}))
