// Many citations, 50, 500 and 5,000 in one answer, and the weight of a page.
//
//	node page_many.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { cpus, loadavg } from 'node:os'
import { desktop, median, onPage, overflow, phone, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const at = name => `${world.base}/ui/answers/${world.answers[name]}`
const card = 'ibid-card:popover-open'

/** How a page was loaded: times in ms since the request. */
const times = page => page.evaluate(() => {
  const nav = performance.getEntriesByType('navigation')[0], paint = performance.getEntriesByName('first-contentful-paint')[0]
  return {
    response: nav.responseEnd, interactive: nav.domInteractive, loaded: nav.loadEventEnd, painted: paint?.startTime,
    weight: performance.getEntriesByType('resource').concat(nav).reduce((sum, e) => sum + e.encodedBodySize, 0),
    packed: performance.getEntriesByType('resource').concat(nav).map(e => `${new URL(e.name).pathname.split('/').pop()} ${e.encodedBodySize}`),
  }
})
/** Blocked collects the tasks that blocked a page. */
const block = context => context.addInitScript(() => {
  globalThis.blocked = []
  new PerformanceObserver(list => { for (const e of list.getEntries()) globalThis.blocked.push(e.duration) }).observe({ type: 'longtask', buffered: true })
})

await withBrowser(executablePath, browser => scenarios({
  'the first paint of an answer with 50 citations, and its weight': async () => {
    const all = [], floor = [] // times of the answer, and of a one-word page as the lower bound
    let weight
    const show = (url, f) => onPage(browser, world, { ...desktop, fresh: true }, async page => { // its own context: an empty cache
      await page.goto(url, { waitUntil: 'load' })
      await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
      f(await times(page))
    })
    for (let i = 0; i < 5; i++) {
      await show(at('fifty'), t => {
        all.push(t.painted)
        weight = t
      })
      await show('data:text/html,Hello', t => floor.push(t.painted))
    }
    console.log(`  50 citations: first contentful paint, median of 5: ${median(all).toFixed(0)} ms (${Math.min(...all).toFixed(0)} to ${Math.max(...all).toFixed(0)}; the goal is 100); of a page that is one word: ${median(floor).toFixed(0)} ms`)
    console.log(`  (${cpus().length} processors, with ${loadavg()[0].toFixed(1)} processes that want one)`)
    console.log(`  50 citations: ${weight.weight} bytes, compressed, with assets (the most is ${60 << 10}): ${weight.packed.join(', ')}`)
    assert.ok(weight.weight <= 60 << 10, `${weight.weight} bytes`)
    assert.ok(median(all) < 5000)
  },
  ...Object.fromEntries([['fifty', 50], ['hundreds', 500], ['thousands', 5000]].map(([name, n]) => [`${n} citations`, () =>
    onPage(browser, world, { ...desktop, fresh: true }, async (page, context) => {
      await block(context)
      await page.goto(at(name), { waitUntil: 'load' })
      assert.equal(await page.locator('.prose .chip').count(), n)
      const t = await times(page)
      await page.locator('.prose .chip').nth(n - 2).scrollIntoViewIfNeeded()
      const before = await page.evaluate(() => performance.now())
      await page.locator('.prose .chip').nth(n - 2).click()
      await page.waitForSelector('.source.active.on')
      const opened = await page.evaluate(() => performance.now()) - before
      assert.match(await page.textContent('.source.active.on'), /Survey of the ponds, part/)
      const blocked = await page.evaluate(() => globalThis.blocked)
      const most = Math.max(0, ...blocked)
      console.log(`  ${n} citations: shown after ${t.painted?.toFixed(0)} ms, loaded after ${t.loaded.toFixed(0)} ms, ${t.weight} bytes; ` +
        `longest task ${most.toFixed(0)} ms; a source opened after ${opened.toFixed(0)} ms with the test's own time`)
      assert.ok(most < 5000, `a task held the page up for ${most} ms`)
      assert.deepEqual(await overflow(page), [])
    })])),
  '5000 citations on a phone': () => onPage(browser, world, phone, async page => {
    await page.goto(at('thousands'))
    await page.locator('.prose .chip').first().tap()
    await page.waitForSelector(card)
    assert.deepEqual(await overflow(page), [])
  }),
}))
