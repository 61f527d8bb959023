# Writes study.json: coxph on the rats with the treatment alone, as a study fits it. Run in this folder.
suppressMessages(library(survival))
source("../json.R")
tight<-coxph.control(eps=1e-13,iter.max=200,outer.max=100,toler.chol=1e-15)
fit<-function(right) {
  f<-coxph(as.formula(paste("Surv(time,status)~rx+",right)),rats,ties="breslow",control=tight)
  h<-f$history[[1]]
  list(coef=unname(f$coefficients[1]),se=sqrt(f$var[1,1]),
       theta=if(is.null(h$history)) h$theta else h$history[nrow(h$history),1])
}
# R's own search leaves the variance with three digits here.
best<-optimize(function(v) coxph(Surv(time,status)~rx+frailty(litter,sparse=FALSE,theta=exp(v)),rats,ties="breslow",control=tight)$history[[1]]$c.loglik,
  c(-1,3),maximum=TRUE,tol=1e-9)
g<-function(more="") sprintf("frailty(litter,sparse=FALSE%s)",more)
write(json(list(versions=list(R=paste(R.version$major,R.version$minor,sep="."),survival=as.character(packageVersion("survival"))),
  gamma_fixed=fit(g(",theta=0.4")), lognormal_fixed=fit(g(",dist='gaussian',theta=0.4")),
  gamma=fit(g(sprintf(",theta=%.15g",exp(best$maximum)))), lognormal_reml=fit(g(",dist='gaussian'")), strata=fit(paste("strata(sex)+",g(",theta=0.4"))))),"study.json")
