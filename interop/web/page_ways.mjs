// Other ways to read: without scripts, in print, right to left, with reduced motion, in forced colours; and pictures.
//
//	node page_ways.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { axe, desktop, follow, onPage, overflow, scenarios, settled, tablet, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const at = name => `${world.base}/ui/answers/${world.answers[name]}`
const card = 'ibid-card:popover-open'

await withBrowser(executablePath, browser => scenarios({
  'without scripts': () => onPage(browser, world, { ...desktop, javaScriptEnabled: false }, async page => {
    await page.goto(at('heron'))
    await follow(page, page.locator('.prose .chip').nth(1))
    assert.match(page.url(), /#s-2$/)
    assert.ok(await page.locator('#s-2').isVisible())
    await page.goto(at('heron'))
    await follow(page, page.locator('#s-1 a.to-panel')) // the first is open
    assert.match(await page.textContent('main'), /Heron census/)
    await page.goto(at('heron'))
    const menu = page.locator('.answer .talk-export') // exports of the answer, and citations of its sources
    for (const summary of await menu.locator('summary').all()) await summary.click()
    const kinds = []
    for (const link of await menu.locator('a').all()) {
      const res = await page.request.get(new URL(await link.getAttribute('href'), world.base).href)
      assert.equal(res.status(), 200)
      assert.match(res.headers()['content-disposition'], /^attachment/)
      assert.match(await res.text(), /census|Heron/i)
      kinds.push(await link.innerText())
    }
    console.log(`  exports: ${kinds.join(', ')}`)
    assert.ok(kinds.length >= 6)
    await follow(page, page.locator('#s-1 a.judge').first())
    await follow(page, page.locator('.judging button', { hasText: 'Right' }))
    assert.match(await page.textContent('main'), /right/i)
    await page.goto(`${world.base}/ui/search`)
    await page.fill('#s-q', 'alders')
    await follow(page, page.locator('.asking button.first'))
    assert.ok(await page.locator('.hits > li').count() > 0, await page.textContent('main'))
    await page.fill('#q', 'marsh')
    await Promise.all([page.waitForURL(/q=marsh/), page.press('#q', 'Enter')])
  }),
  'printed': () => onPage(browser, world, desktop, async page => {
    await page.goto(at('report'))
    await page.emulateMedia({ media: 'print' })
    const marks = await page.locator('.prose ibid-cite').evaluateAll(all => all.map(e => getComputedStyle(e, '::after').content + e.dataset.n))
    assert.ok(marks.length >= 4)
    assert.ok(marks.every(m => /^"\[\d/.test(m)), String(marks))
    for (const hidden of ['.top', '.menu', '.judge', '.to-panel']) {
      assert.equal(await page.locator(hidden).evaluateAll(all => all.filter(e => e.checkVisibility()).length), 0, hidden)
    }
    assert.equal(await page.locator('.source').evaluateAll(all => all.filter(e => !e.checkVisibility()).length), 0)
    const pdf = await page.pdf()
    assert.ok(pdf.length > 10_000)
    assert.equal(pdf.subarray(0, 5).toString(), '%PDF-')
    const { spawnSync } = await import('node:child_process')
    const text = spawnSync('pdftotext', ['-', '-'], { input: pdf })
    if (text.error) return console.log('  pdftotext is missing: the text of the print was not read')
    assert.match(text.stdout.toString(), /\[1\]/)
    assert.match(text.stdout.toString(), /marsh\.example\/area/)
  }),
  'from right to left': () => onPage(browser, world, tablet, async page => {
    await page.goto(at('maktaba'))
    assert.equal(await page.locator('.prose').evaluate(e => getComputedStyle(e).direction), 'rtl')
    await page.locator('.prose .chip').first().hover()
    await page.waitForSelector(card)
    const inside = await page.evaluate(s => { const r = document.querySelector(s).getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth }, card)
    assert.ok(inside)
    assert.match(await page.textContent(card), /maktaba\.example/)
  }),
  'every character has a shape': () => onPage(browser, world, desktop, async page => {
    // A character without a glyph is drawn as the same box as one that no font has.
    for (const name of ['maktaba', 'sagi', 'buecherei']) {
      await page.goto(at(name))
      const missing = await page.evaluate(() => {
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
        canvas.canvas.width = canvas.canvas.height = 40
        canvas.font = getComputedStyle(document.querySelector('.prose')).font
        const drawn = c => { canvas.clearRect(0, 0, 40, 40); canvas.fillText(c, 5, 30); return canvas.getImageData(0, 0, 40, 40).data.join() }
        const none = drawn('\u{10FFFD}')
        return [...new Set(document.querySelector('main').textContent)].filter(c => c.trim() && drawn(c) === none)
      })
      assert.deepEqual(missing, [], name)
    }
  }),
  'with little motion': () => onPage(browser, world, { ...tablet, reducedMotion: 'reduce' }, async page => {
    await page.goto(at('heron'))
    await page.locator('.prose .chip').first().click()
    await page.waitForSelector(card)
    assert.equal(await page.evaluate(() => document.getAnimations({ subtree: true }).length), 0)
  }),
  'in few colours': () => onPage(browser, world, { ...desktop, forcedColors: 'active' }, async page => {
    await page.goto(at('heron'))
    await page.locator('.prose .chip').first().focus()
    await page.waitForSelector('mark.claim.on')
    await settled(page)
    const [on, off] = await page.evaluate(() => ['mark.claim.on', 'mark.claim:not(.on)'].map(s => getComputedStyle(document.querySelector(s)).backgroundColor))
    assert.notEqual(on, off)
    assert.notEqual(await page.locator('.prose .chip').first().evaluate(e => getComputedStyle(e).borderTopStyle), 'none')
    if (world.shots) await page.screenshot({ path: `${world.shots}/forced-colours.png`, fullPage: true })
  }),
  'twice as large': () => onPage(browser, world, { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }, async page => {
    for (const url of [at('report'), `${world.base}/`, `${world.demo}/ui/runs/demo`, `${world.base}/ui/ask`]) {
      await page.goto(url)
      assert.deepEqual(await overflow(page), [], url)
    }
    await page.goto(at('report'))
    await page.locator('.prose .chip').first().click()
    await page.waitForSelector(card)
    await settled(page)
    const r = await page.evaluate(s => document.querySelector(s).getBoundingClientRect().toJSON(), card)
    assert.ok(r.top >= 0 && r.left >= 0 && r.bottom <= 401 && r.right <= 641, JSON.stringify(r))
    assert.deepEqual(await axe(page), [])
  }),
  'pictures': async () => {
    if (!world.images) return
    await onPage(browser, world, desktop, async page => {
      for (const [name, url, colorScheme] of [
        ['answer', `${world.demo}/ui/conversations/herons`, 'light'], ['overview', `${world.demo}/`, 'light'],
        ['conversation', `${world.base}/ui/conversations/lake`, 'dark'],
      ]) {
        await page.emulateMedia({ colorScheme })
        await page.goto(url)
        if (name === 'answer') {
          await page.goto(new URL(await page.locator('.answer-foot a[href^="/ui/answers/"], a[href*="/ui/answers/"]').first().getAttribute('href'), url).href.replace(/\/(export|sources).*/, ''))
        }
        await page.screenshot({ path: `${world.images}/${name}.png` })
      }
    })
  },
}))
